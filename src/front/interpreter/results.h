/* A kernel's packets (kernels/README.md) to lines.
 *
 * A result is one line, written while its packets come: a text goes on as it is, JSON is checked on
 * the way (json_text.h), and of neither anything is kept. So while a line is half written no other
 * may begin, and `results_open` says so. A field is written once: what comes for it again, after
 * another, is ignored, as is every packet that makes no sense. JSON that turns out to be none has
 * been written in part by then; its field is given once more, as null, and for every client the
 * last one counts.
 *
 * An error is kept until the end of the cell, since the end may say more about it; the first
 * counts. */
#pragma once

#include "front/core/output_filter.h"
#include "front/interpreter/json_text.h"
#include "front/interpreter/lines.h"

#define RESULT_MAX (64u * 1024 * 1024) /* bytes of one result; the rest is ignored */
#define RESULT_JSON \
    (8u * 1024 * 1024)             /* of a field that is JSON; one that is longer counts as none */
#define RESULT_ERROR (256u * 1024) /* of each part of an error; the rest is ignored */

enum error_part { ERROR_NAME, ERROR_VALUE, ERROR_TRACEBACK, ERROR_PARTS_ };

struct results {
    struct lines *lines;
    struct output_filter *output_filter; /* or NULL */
    enum { RESULT_NONE, RESULT_VALUE, RESULT_FAILURE, RESULT_IGNORED } kind;
    bool main;     /* the value of the cell */
    bool begun;    /* the line */
    int field;     /* whose pieces come; -1: none */
    unsigned seen; /* fields that were written, or began: a bit each */
    size_t bytes;  /* of this result */
    struct escape text;
    struct json_text json;
    size_t json_bytes;
    bool json_begun;
    bool failed; /* there was an error, and these are its parts */
    struct strbuf error[ERROR_PARTS_];
};

void results_init(struct results *r, struct lines *l, struct output_filter *o);
void results_done(struct results *r);
void results_packet(struct results *r, const void *packet, size_t len);
/* A line is half written. */
bool results_open(const struct results *r);
/* Ends it as it is. */
void results_close(struct results *r);
