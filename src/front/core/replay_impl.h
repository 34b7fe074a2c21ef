/* What recording cells and running them again have in common: what a cell said, as a digest. */
#pragma once

#include <openssl/evp.h>

#include "lib/text/strbuf.h"
#include "front/core/output_filter.h"
#include "front/core/replay.h"

#define CELL_HISTORY_DIGEST_LEN 64

enum cell_history_part {
    CELL_HISTORY_STDOUT,
    CELL_HISTORY_STDERR,
    CELL_HISTORY_RESULTS,
    CELL_HISTORY_PARTS_
};

/* Each stream by itself: how they are mixed is chance. */
struct cell_history_sum {
    EVP_MD_CTX *parts[CELL_HISTORY_PARTS_]; /* NULL until something comes */
    struct strbuf shown;
};

void cell_history_sum_init(struct cell_history_sum *s);
void cell_history_sum_done(struct cell_history_sum *s);
void cell_history_sum_add(struct cell_history_sum *s, uint8_t sub, const void *p, size_t len);
void cell_history_sum_end(struct cell_history_sum *s, struct output_filter *o,
                          char digest[CELL_HISTORY_DIGEST_LEN + 1],
                          char shown[REPLAY_SHOWN_MAX + 1]);

/* The sandbox has run these cells, as those of that context. */
void replay_inherit(struct sandbox *b, const char *context, json_t *cells);
