/* load answers a status that the ABI does not list. */
#define FIXTURE_NAME "unknown_status"
#define FIXTURE_AT_LOAD(in)                                            \
    do {                                                               \
        free(in);                                                      \
        *out = 0;                                                      \
        host->error(host->ctx, 4711, "unknown_status: something new"); \
        return 4711;                                                   \
    } while (0)
#include "good.c"
