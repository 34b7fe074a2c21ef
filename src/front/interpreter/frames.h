/* A queue of frames from an agent that cannot be passed on yet.
 *
 * Output that follows output of the same stream is joined, so a program that writes byte by byte
 * costs no more than one that writes in large pieces. */
#pragma once

#include "lib/text/strbuf.h"

struct frames {
    struct strbuf bytes; /* for each frame: struct frame_head, then its bytes */
    size_t at;           /* offset of the first frame */
    size_t taken;        /* bytes of the first frame that were taken */
    size_t last;         /* offset of the last frame; SIZE_MAX: there is none */
};

void frames_init(struct frames *f, size_t max);
void frames_done(struct frames *f);
bool frames_empty(const struct frames *f);
/* False: there is no room for the whole frame, and nothing was added. */
bool frames_add(struct frames *f, uint8_t sub, bool output, const void *p, size_t len);
/* Takes the first frame; of output, at most `most` bytes at once. The bytes are valid until the
 * next call. False: there is no frame. */
bool frames_take(struct frames *f, size_t most, uint8_t *ret_sub, const void **ret_p,
                 size_t *ret_len);
