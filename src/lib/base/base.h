/* Helpers for every file: attributes, cleanup at the end of a scope, small functions. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/banned.h"

#define AUTO(fn)                      __attribute__((cleanup(fn)))
#define PRINTF(f, a)                  __attribute__((format(printf, f, a)))
#define UNUSED                        __attribute__((unused)) /* of a parameter, after its name */
#define ARRAY_SIZE(a)                 (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

static inline void free_p(void *p)
{
    free(*(void **)p);
}

static inline void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Hands a descriptor or a pointer out of a scope that would otherwise release it. */
static inline int steal_fd(int *fd)
{
    int f = *fd;
    *fd = -1;
    return f;
}

static inline void *steal_ptr_(void *pp)
{
    void *p = *(void **)pp;
    *(void **)pp = NULL;
    return p;
}
#define steal_ptr(pp) ((__typeof__(*(pp)))steal_ptr_(pp))

/* Small allocations of a size we chose: they abort on failure. A size that came from outside goes
 * through a limit and plain malloc. */
void *xcalloc(size_t n, size_t size) __attribute__((returns_nonnull, malloc));
void *xrealloc(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
/* Makes room for one more in an array that has n entries, and room for *cap. */
void *xgrow(void *p, size_t n, size_t *cap, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((returns_nonnull, malloc));
void *xmemdup(const void *p, size_t len) __attribute__((returns_nonnull, malloc));
/* A structure on the heap: NEW(struct pair, .key = key, .value = value). */
#define NEW(type, ...) ((type *)xmemdup(&(type){__VA_ARGS__}, sizeof(type)))
