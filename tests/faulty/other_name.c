/* The library calls itself otherwise than its manifest does. */
#define FIXTURE_NAME "somebody_else"
#include "good.c"
