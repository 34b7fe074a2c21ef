/* Frames that wait: what an agent sent while it could not be written on.
 *
 * Output that follows output of the same stream is joined, so a program that writes byte by byte
 * costs no more than one that writes much. */
#pragma once

#include "lib/text/strbuf.h"

struct frames {
    struct strbuf bytes; /* of each: struct frame_head, then its bytes */
    size_t at;           /* where the first is */
    size_t taken;        /* bytes of it that are gone */
    size_t last;         /* where the last is; SIZE_MAX: there is none */
};

void frames_init(struct frames *f, size_t max);
void frames_done(struct frames *f);
bool frames_empty(const struct frames *f);
/* False: there is no room for all of it, and nothing was added. */
bool frames_add(struct frames *f, uint8_t sub, bool output, const void *p, size_t len);
/* The first one; of output at most `most` bytes at once. They are valid until the next call. False:
 * there is none. */
bool frames_take(struct frames *f, size_t most, uint8_t *ret_sub, const void **ret_p,
                 size_t *ret_len);
