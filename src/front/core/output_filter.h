/* The output filter: everything that a call outputs passes it on the way out. It sanitises the text
 * (lib/sanitise/sanitise.h), counts what it finds, and has that put on record.
 *
 * Each cell, process or program has a filter of its own, made when it begins and freed when it is
 * over. Then the findings are put on record, by kind and number. With the mode off there is no
 * filter, and no cost.
 *
 * A filter may hold back the end of a line to see how it goes on, for OUTPUT_FILTER_QUIET_MS at
 * most. Then it calls on_quiet, and its owner flushes it. */
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

/* Compiles the operator's patterns and ours. They apply to calls that begin from now on. */
int output_filter_set_patterns(struct front *f, const char *patterns, struct sg_error *e);

/* ---- which mode ------------------------------------------------------------------------------ */

/* The mode that applies. own: for contexts and tools; otherwise for sandboxes of E2B's API. call:
 * the mode that the call asks for, or NULL. *refused (may be NULL): the call asked for off, and a
 * level above forbids that. */
enum sanitise_mode output_filter_mode(const struct front *f, const struct store_tenant *tenant,
                                      bool own, const struct sanitise_level *call, bool *refused);
/* The same for callers that know only the sandbox's tenant. */
enum sanitise_mode output_filter_mode_of(struct front *f, const char *tenant, bool own);

/* ---- one call -------------------------------------------------------------------------------- */

struct output_filter;
/* Returns NULL if the mode is off; all functions accept NULL and pass text through as it is.
 * on_quiet may be NULL if nobody waits for lines. */
struct output_filter *output_filter_new(struct front *f, enum sanitise_mode mode,
                                        const char *tenant, const char *sandbox_id,
                                        void (*on_quiet)(void *arg), void *arg);
/* Puts the findings on record and frees the filter. */
void output_filter_free(struct output_filter *o);

/* The text of a stream that can go out now; valid until the next call. */
struct output_filter_text {
    const char *p;
    size_t len;
};
struct output_filter_text output_filter_feed(struct output_filter *o,
                                             enum output_filter_stream stream, const void *p,
                                             size_t len);
struct output_filter_text output_filter_flush(struct output_filter *o,
                                              enum output_filter_stream stream);
/* Sanitises a complete text, in place. */
void output_filter_clean(struct output_filter *o, struct strbuf *text);

/* Whether the filter found anything; the second writes the counts as a JSON object by kinds. */
bool output_filter_found(const struct output_filter *o);
void output_filter_put_counts(const struct output_filter *o, struct json *j);

/* Sanitises a message that will be stored, whatever the modes are. ret must be at least as large as
 * text with its NUL. */
void output_filter_stored_message(struct front *f, const char *text, char *ret, size_t cap);
