#include "front/core/wipe.h"

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void wipe_and_free(void *p)
{
    if (p)
        explicit_bzero(p, malloc_usable_size(p));
    free(p);
}

void wipe_json_memory(void)
{
    json_set_alloc_funcs(malloc, wipe_and_free);
}
