/* A growing byte buffer with a bound.
 *
 * Invariants: buf is never NULL and buf[len] is always '\0'; len <= max. When an append would pass
 * max (or memory is out) the buffer keeps what it had, `truncated` becomes true and stays so until
 * strbuf_reset: callers append freely and check once. */
#pragma once

#include <stdarg.h>

#include "lib/base/base.h"

struct strbuf {
    char *buf;
    size_t len;
    size_t cap; /* allocated, 0 while buf points at the shared empty string */
    size_t max;
    bool truncated;
};

/* An empty buffer: AUTO(strbuf_done) struct strbuf out = strbuf_upto(MAX). */
struct strbuf strbuf_upto(size_t max);
void strbuf_init(struct strbuf *s, size_t max); /* the same for a buffer that is there already */
void strbuf_done(struct strbuf *s);             /* accepts a zeroed struct */
void strbuf_reset(struct strbuf *s);
/* Allocates all the memory that the buffer may ever need, so that no copy is left behind as it
 * grows: for a secret, to be wiped by strbuf_wipe in place of strbuf_done. */
void strbuf_reserve(struct strbuf *s);
void strbuf_wipe(struct strbuf *s);
/* Appends as much as fits. */
void strbuf_add(struct strbuf *s, const void *data, size_t len);
void strbuf_addstr(struct strbuf *s, const char *str);
void strbuf_addch(struct strbuf *s, char c);
void strbuf_addf(struct strbuf *s, const char *fmt, ...) PRINTF(2, 3);
/* Removes the first n bytes. */
void strbuf_consume(struct strbuf *s, size_t n);
/* Gives the NUL-terminated heap string to the caller and leaves the buffer empty. */
char *strbuf_detach(struct strbuf *s, size_t *ret_len);
