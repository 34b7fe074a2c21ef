/* What a program wrote, on its way to our own standard output and error. A reader that is slow
 * holds the program back, but never our loop: only what a descriptor takes at once is written. */
#pragma once

#include <poll.h>

#include "lib/text/strbuf.h"

#define EXEC_OUTPUT_HIGH (256u * 1024) /* from here on the stream waits */

struct exec_output {
    int fd;
    struct strbuf pending;
    size_t written; /* of it */
    int error;      /* positive errno; what comes after is dropped */
};

void exec_output_init(struct exec_output *o, int fd);
void exec_output_done(struct exec_output *o);
size_t exec_output_left(const struct exec_output *o);
/* Writes what can be written without waiting. */
void exec_output_flush(struct exec_output *o);
