/* Turns a kernel's packets (kernels/README.md) into lines.
 *
 * A result is one line, written while its packets come: text is passed on as it is, JSON is checked
 * on the way (json_text.h), and nothing of either is kept. So no other line may begin while one is
 * half written: `results_open` says whether one is. Each field is written once: pieces that come
 * for it after another field has begun are ignored, as is every packet that makes no sense. JSON
 * may turn out to be invalid when part of it has been written; then the field is written once more,
 * as null, and every client takes the last one.
 *
 * An error is kept until the end of the cell, since the end may say more about it. The first error
 * counts. */
#pragma once

#include "front/core/output_filter.h"
#include "front/interpreter/json_text.h"
#include "front/interpreter/lines.h"

#define RESULT_MAX   (64u * 1024 * 1024) /* bytes of one result; the rest is ignored */
#define RESULT_JSON  (8u * 1024 * 1024)  /* bytes of a JSON field; a longer one counts as invalid */
#define RESULT_ERROR (256u * 1024)       /* bytes of each part of an error; the rest is ignored */

enum error_part { ERROR_NAME, ERROR_VALUE, ERROR_TRACEBACK, ERROR_PARTS_ };

struct results {
    struct lines *lines;
    struct output_filter *output_filter; /* or NULL */
    enum { RESULT_NONE, RESULT_VALUE, RESULT_FAILURE, RESULT_IGNORED } kind;
    bool main;     /* the result is the value of the cell */
    bool begun;    /* its line has begun */
    int field;     /* field whose pieces come now; -1: none */
    unsigned seen; /* a bit for each field that has begun */
    size_t bytes;  /* bytes of this result */
    struct escape text;
    struct json_text json;
    size_t json_bytes;
    bool json_begun;
    bool failed; /* there was an error; `error` has its parts */
    struct strbuf error[ERROR_PARTS_];
};

void results_init(struct results *r, struct lines *l, struct output_filter *o);
void results_done(struct results *r);
void results_packet(struct results *r, const void *packet, size_t len);
/* Whether a line is half written. */
bool results_open(const struct results *r);
/* Ends the half-written line as it is. */
void results_close(struct results *r);
