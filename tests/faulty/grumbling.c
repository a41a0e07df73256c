/* Gives texts with every call that succeeds, bytes that are not UTF-8, line ends, and far too much. */
#define FIXTURE_NAME "grumbling"
#define FIXTURE_AT_LOAD(in)                                  \
    do {                                                     \
        static char longer[100000];                          \
        memset(longer, 97, sizeof longer - 1);               \
        host->error(host->ctx, TN_INTERNAL, 0);              \
        host->error(host->ctx, TN_INTERNAL, longer);         \
        host->log(host->ctx, 99, "level \x1b[31m 99\n\xff"); \
        host->log(host->ctx, TN_LOG_WARNING, 0);             \
    } while (0)
#include "good.c"
