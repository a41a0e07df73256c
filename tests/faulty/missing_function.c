/* Lacks a function that every plugin must have. */
#define FIXTURE_NAME "missing_function"
#define FIXTURE_DEVICE_CLOSE 0
#define FIXTURE_AT_LOAD(in) (void)(in), (void)device_close
#include "good.c"
