/* load answers TN_OK without an instance. */
#define FIXTURE_NAME "load_null"
#define FIXTURE_AT_LOAD(in) (free(in), *out = 0)
#include "good.c"
