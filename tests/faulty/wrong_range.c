/* Serves only minors that no host has yet. */
#define FIXTURE_NAME "wrong_range"
#define FIXTURE_ABI \
    { 900, 901 }
#include "good.c"
