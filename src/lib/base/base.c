#include "lib/base/base.h"

#include <string.h>

/* Aborts without memory, since nothing sensible is left to do: the sizes here are small and our
 * own. */
static void *or_abort(void *p)
{
    static const char line[] = "sandglass: out of memory\n";

    if (!p) {
        ssize_t r = write(STDERR_FILENO, line, sizeof(line) - 1);
        (void)r;
        abort();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return or_abort(calloc(n, size));
}

void *xrealloc(void *p, size_t n, size_t size)
{
    return or_abort(reallocarray(p, n, size));
}

void *xgrow(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? 2 * *cap : 16;
    return xrealloc(p, *cap, size);
}

char *xstrdup(const char *s)
{
    return or_abort(strdup(s));
}

void *xmemdup(const void *p, size_t len)
{
    return memcpy(or_abort(malloc(len)), p, len);
}
