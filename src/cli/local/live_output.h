/* Passes the program's output on to our own standard output and error as it comes.
 *
 * A slow reader holds the program back, as in any pipeline, but must not hold back a signal or the
 * time limit: while we wait for the reader, we watch both. Output that comes after the time limit,
 * when the library is about to end the run, is kept and written at the end, so nothing is lost. */
#pragma once

#include <sandglass.h>

#include "lib/text/strbuf.h"

struct live_output {
    int signal_fd;         /* readable when a signal wants us to end */
    uint64_t deadline_ns;  /* clock_ns(); from then on writing must not wait */
    bool gone;             /* nobody reads any more (EPIPE), or a write failed otherwise */
    int error;             /* the errno of that write */
    struct strbuf late[2]; /* kept output; the library bounds it by the output limit */
};

void live_output_init(struct live_output *o, int signal_fd, uint64_t timeout_ms);
/* An sg_exec.on_output; arg is the struct live_output. */
void live_output_write(void *arg, enum sg_stream stream, const void *data, size_t len);
/* Writes the output that was kept, and frees it. */
void live_output_done(struct live_output *o);
