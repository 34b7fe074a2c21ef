/* Output of a program on its way to our own standard output or error. A slow reader holds the
 * program back, but never our loop: only as much is written as the descriptor takes at once. */
#pragma once

#include <poll.h>

#include "lib/text/strbuf.h"

#define EXEC_OUTPUT_HIGH (256u * 1024) /* with so much pending, the stream waits */

struct exec_output {
    int fd;
    struct strbuf pending;
    size_t written; /* how much of pending has been written */
    int error;      /* positive errno; later output is dropped */
};

void exec_output_init(struct exec_output *o, int fd);
void exec_output_done(struct exec_output *o);
size_t exec_output_left(const struct exec_output *o);
/* Writes as much as is possible without waiting. */
void exec_output_flush(struct exec_output *o);
