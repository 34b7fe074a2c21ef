/* What a call says, on its way out: sanitised (lib/sanitise/sanitise.h), counted, and on record.
 *
 * One for each cell, process or program, made when it begins and freed when it is over; then what
 * was found is put on record, by kinds and numbers. With the mode off there is none at all, and
 * nothing costs anything.
 *
 * The end of a line may be held back to see how it goes on, for OUTPUT_FILTER_QUIET_MS at most:
 * then on_quiet is called, and who owns the output filter flushes it. */
#pragma once

#include "lib/text/json.h"
#include "front/core/front.h"
#include "lib/sanitise/sanitise.h"
#include "front/store/store.h"

#define OUTPUT_FILTER_QUIET_MS 20

enum output_filter_stream {
    OUTPUT_FILTER_OUT,
    OUTPUT_FILTER_ERR,
    OUTPUT_FILTER_RESULT,
    OUTPUT_FILTER_STREAMS_
};

/* ---- the patterns ---------------------------------------------------------------------------- */

/* Compiles the operator's patterns, and ours, for everything that begins from now on. */
int output_filter_set_patterns(struct front *f, const char *patterns, struct sg_error *e);

/* ---- which mode ------------------------------------------------------------------------------ */

/* For contexts and tools (own), or for sandboxes of E2B's API. call: its own word, or NULL.
 * *refused (may be NULL): that was off, and a level above forbids it. */
enum sanitise_mode output_filter_mode(const struct front *f, const struct store_tenant *tenant,
                                      bool own, const struct sanitise_level *call, bool *refused);
/* For who knows nothing but the sandbox. */
enum sanitise_mode output_filter_mode_of(struct front *f, const char *tenant, bool own);

/* ---- one call -------------------------------------------------------------------------------- */

struct output_filter;
/* NULL if the mode is off; all functions take that, and hand text on as it is. on_quiet may be NULL
 * if nobody waits for lines. */
struct output_filter *output_filter_new(struct front *f, enum sanitise_mode mode,
                                        const char *tenant, const char *sandbox_id,
                                        void (*on_quiet)(void *arg), void *arg);
/* Puts what was found on record. */
void output_filter_free(struct output_filter *o);

/* What can go out now of a stream; valid until the next call. */
struct output_filter_text {
    const char *p;
    size_t len;
};
struct output_filter_text output_filter_feed(struct output_filter *o,
                                             enum output_filter_stream stream, const void *p,
                                             size_t len);
struct output_filter_text output_filter_flush(struct output_filter *o,
                                              enum output_filter_stream stream);
/* A text that is there as a whole, in place. */
void output_filter_clean(struct output_filter *o, struct strbuf *text);

/* Whether anything was found; and as a JSON object by kinds. */
bool output_filter_found(const struct output_filter *o);
void output_filter_put_counts(const struct output_filter *o, struct json *j);

/* A message that is stored, whatever the modes are. ret is as large as text with its NUL, or
 * larger. */
void output_filter_stored_message(struct front *f, const char *text, char *ret, size_t cap);
