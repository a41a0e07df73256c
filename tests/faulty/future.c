/* A plugin of a later minor: longer tables, a range that still holds this one. */
#define FIXTURE_NAME "future"
#define FIXTURE_ABI \
    { 0, 7 }
#define FIXTURE_PLAN_BYTES (TN_SIZE_PLAN_API + 32)
#define FIXTURE_ROOT_BYTES (TN_SIZE_PLUGIN + 32)
#include "good.c"
