/* The bytes of a layer: read as they come, decompressed, counted, hashed.
 *
 * What it is, tar, gzip or zstd, its first bytes say. gzip may have several members, zstd several
 * frames. Too many bytes, too many of them for each byte that came, and an end in the middle of a member are
 * errors: a small layer must not become a large one without a limit, nor a cut one a smaller world. */
#pragma once

#include "image/image.h"

struct input;

int input_new(int fd, const struct image_limits *limits, struct input **ret, struct sg_error *e);
void input_free_p(struct input **in);

/* The next bytes, at most `max`, in the input's own buffer until the next call; *ret_len is 0 at the end. */
int input_next(struct input *in, uint64_t max, const uint8_t **ret, size_t *ret_len,
               struct sg_error *e);
/* Exactly so many. 1; 0 at the end; an error if the end comes in between. */
int input_read(struct input *in, void *buf, size_t len, struct sg_error *e);
/* Passes over so many, or over all that is left if there are fewer and `len` is UINT64_MAX. */
int input_skip(struct input *in, uint64_t len, struct sg_error *e);

/* So far: how many bytes of tar; and at the end, the SHA-256 of all, by which OCI knows a layer (diff_id). */
uint64_t input_taken(const struct input *in);
void input_digest(struct input *in, uint8_t ret[IMAGE_DIGEST]);
