/* load registers adapters, ops and types, then fails with a text. */
#define FIXTURE_NAME "load_fails"
#define FIXTURE_AT_LOAD(in)                                         \
    do {                                                            \
        const tn_host *h = host;                                    \
        *out = 0;                                                   \
        free(in);                                                   \
        h->error(h->ctx, TN_DENIED, "no licence for this machine"); \
        return TN_DENIED;                                           \
    } while (0)
#include "good.c"
