/* What a call says, on its way out: sanitised (lib/sanitise/sanitise.h), counted, and on record.
 *
 * One for each cell, process or program, made when it begins and freed when it is over; then what
 * was found is put on record, by kinds and numbers. With the mode off there is none at all, and
 * nothing costs anything.
 *
 * The end of a line may be held back to see how it goes on, for OUTFLOW_QUIET_MS at most: then
 * on_quiet is called, and who owns the outflow flushes it. */
#pragma once

#include "lib/text/json.h"
#include "front/core/front.h"
#include "lib/sanitise/sanitise.h"
#include "front/store/store.h"

#define OUTFLOW_QUIET_MS 20

enum outflow_stream { OUTFLOW_OUT, OUTFLOW_ERR, OUTFLOW_RESULT, OUTFLOW_STREAMS_ };

/* ---- the patterns ---------------------------------------------------------------------------- */

/* Compiles the operator's patterns, and ours, for everything that begins from now on. */
int outflow_set_patterns(struct front *f, const char *patterns, struct sg_error *e);

/* ---- which mode ------------------------------------------------------------------------------ */

/* For contexts and tools (own), or for sandboxes of E2B's API. call: its own word, or NULL.
 * *refused (may be NULL): that was off, and a level above forbids it. */
enum sanitise_mode outflow_mode(const struct front *f, const struct store_tenant *tenant, bool own,
                                const struct sanitise_level *call, bool *refused);
/* For who knows nothing but the sandbox. */
enum sanitise_mode outflow_mode_of(struct front *f, const char *tenant, bool own);

/* ---- one call -------------------------------------------------------------------------------- */

struct outflow;
/* NULL if the mode is off; all functions take that, and hand text on as it is. on_quiet may be NULL
 * if nobody waits for lines. */
struct outflow *outflow_new(struct front *f, enum sanitise_mode mode, const char *tenant,
                            const char *sandbox, void (*on_quiet)(void *arg), void *arg);
/* Puts what was found on record. */
void outflow_free(struct outflow *o);

/* What can go out now of a stream; valid until the next call. */
struct outflow_text {
    const char *p;
    size_t len;
};
struct outflow_text outflow_feed(struct outflow *o, enum outflow_stream stream, const void *p,
                                 size_t len);
struct outflow_text outflow_flush(struct outflow *o, enum outflow_stream stream);
/* A text that is there as a whole, in place. */
void outflow_clean(struct outflow *o, struct strbuf *text);

/* Whether anything was found; and as a JSON object by kinds. */
bool outflow_found(const struct outflow *o);
void outflow_put_counts(const struct outflow *o, struct json *j);

/* A message that is stored, whatever the modes are. ret is as large as text with its NUL, or
 * larger. */
void outflow_stored_message(struct front *f, const char *text, char *ret, size_t cap);
