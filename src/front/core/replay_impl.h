/* The digest of a cell's output, which recording and replaying share. */
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

/* Each stream has a digest of its own, since the order between streams is chance. */
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

/* Notes that the sandbox has run these cells, as cells of that context. */
void replay_inherit(struct sandbox *b, const char *context, json_t *cells);
