/* query says why it refuses this host. */
#define FIXTURE_NAME "query_fails"
#define FIXTURE_QUERY(host, out)                                                          \
    do {                                                                                  \
        (void)(out);                                                                      \
        (void)k_plugin.name;                                                              \
        (host)->error((host)->ctx, TN_UNSUPPORTED, "query_fails: the driver is too old"); \
        return TN_UNSUPPORTED;                                                            \
    } while (0)
#include "good.c"
