/* Its root table is shorter than version 1. */
#define FIXTURE_NAME "short_table"
#define FIXTURE_ROOT_BYTES (TN_V1_PLUGIN - 8)
#include "good.c"
