/* Files on their way to the agent, one after the other.
 *
 * The owner calls sink_begin, sink_data and sink_end in the order of the body. Bytes within the
 * agent's credit are sent straight from the caller's buffer; the rest waits in the sink, and the
 * owner must not read more of the body until sink_drained. So the sink holds at most one piece of
 * the body. A file is begun when the file before it has been written.
 *
 *   sink_begin --> OP_FILE_WRITE --> sink_data: DATA, within its credit --> sink_end: EOF --> END
 */
#pragma once

#include "front/envd/files.h"
#include "front/core/call.h"

struct sink {
    /* Set by the owner. */
    struct sandbox *sandbox;
    const struct files_target *target;
    const struct strbuf *metadata; /* as in wire/agent.h */
    void *owner;
    /* The sink can take more, or everything is written. */
    void (*on_room)(struct sink *s);
    /* The last callback. `status` is as in front/core/call.h; `path` is the file's. */
    void (*on_fail)(struct sink *s, const char *path, int status, const char *message);

    struct call call;
    bool open;   /* a file is being written */
    bool ending; /* all bytes of the file were sent */
    bool failed;
    struct strbuf queue; /* records: see files_write.c */
    size_t queue_off;    /* bytes before this offset have been sent */
    char path[OPS_PATH_MAX];
    char **paths; /* paths of all files that were begun */
    size_t n_paths;
    json_t *written; /* array: path, name, type and metadata of each written file */
};

#define SINK_FILES_MAX 1000

void sink_init(struct sink *s);
void sink_done(struct sink *s);
void sink_begin(struct sink *s, const char *path);
void sink_data(struct sink *s, const void *p, size_t len);
void sink_end(struct sink *s);
/* Whether everything was sent and the sink takes more. */
bool sink_drained(const struct sink *s);
/* Whether everything was written. */
bool sink_idle(const struct sink *s);
