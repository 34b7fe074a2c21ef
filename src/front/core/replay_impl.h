/* What recording cells and running them again have in common: what a cell said, as a digest. */
#pragma once

#include <openssl/evp.h>

#include "lib/text/strbuf.h"
#include "front/core/outflow.h"
#include "front/core/replay.h"

#define TAPE_DIGEST_LEN 64

enum tape_part { TAPE_STDOUT, TAPE_STDERR, TAPE_RESULTS, TAPE_PARTS_ };

/* Each stream by itself: how they are mixed is chance. */
struct tape_sum {
    EVP_MD_CTX *parts[TAPE_PARTS_]; /* NULL until something comes */
    struct strbuf shown;
};

void tape_sum_init(struct tape_sum *s);
void tape_sum_done(struct tape_sum *s);
void tape_sum_add(struct tape_sum *s, uint8_t sub, const void *p, size_t len);
void tape_sum_end(struct tape_sum *s, struct outflow *o, char digest[TAPE_DIGEST_LEN + 1],
                  char shown[REPLAY_SHOWN_MAX + 1]);

/* The box has run these cells, as those of that context. */
void replay_inherit(struct box *b, const char *context, json_t *cells);
