/* query answers TN_OK and gives no table. */
#define FIXTURE_NAME "query_null"
#define FIXTURE_QUERY(host, out) (void)(host), (void)(out), (void)k_plugin.name
#include "good.c"
