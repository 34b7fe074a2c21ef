/* Files on their way to the agent, one after the other.
 *
 * The owner says what comes in the order in which it comes: a file begins, bytes, it ends. What can
 * be sent is sent straight from the caller's buffer; the rest waits here, and the owner must not
 * read more of the body until sink_drained. So at most one piece of the body is held. A file is
 * begun when the one before is written.
 *
 *   sink_begin --> OP_FILE_WRITE --> sink_data: DATA, within its credit --> sink_end: EOF --> END
 */
#pragma once

#include "front/envd/files.h"
#include "front/core/call.h"

struct sink {
    /* The owner's. */
    struct sandbox *sandbox;
    const struct files_target *target;
    const struct strbuf *metadata; /* as in ops.h */
    void *owner;
    /* More can be taken, or all is written. */
    void (*on_room)(struct sink *s);
    /* Nothing more happens after it. status as in call.h; the path is the file's. */
    void (*on_fail)(struct sink *s, const char *path, int status, const char *message);

    struct call call;
    bool open;   /* a file is being written */
    bool ending; /* all of it was sent */
    bool failed;
    struct strbuf queue; /* records: see files_write.c */
    size_t queue_off;    /* what is before it has been sent */
    char path[OPS_PATH_MAX];
    char **paths; /* of all that were begun */
    size_t n_paths;
    json_t *written; /* an array: path, name, type and metadata of each */
};

#define SINK_FILES_MAX 1000

void sink_init(struct sink *s);
void sink_done(struct sink *s);
void sink_begin(struct sink *s, const char *path);
void sink_data(struct sink *s, const void *p, size_t len);
void sink_end(struct sink *s);
/* Everything was sent, and more can be. */
bool sink_drained(const struct sink *s);
/* Everything was written. */
bool sink_idle(const struct sink *s);
