/* Lacks the one export. */
#define FIXTURE_NAME "no_export"
#define FIXTURE_WITHOUT_EXPORT
#include "good.c"
