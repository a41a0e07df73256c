/* unload answers an error although nothing is alive. */
#define FIXTURE_NAME "unload_fails"
#define FIXTURE_AT_UNLOAD(in) return fail(in, TN_INTERNAL, "a thread does not end")
#include "good.c"
