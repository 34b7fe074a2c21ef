/* The answer to an execution: JSON objects, one a line, as E2B's clients read them.
 *
 * Every function here writes whole lines, except for lines_put* and lines_flush: with these
 * results.c writes a line part by part, as the parts come. Bytes are gathered in one buffer that
 * all executions share, and passed on before a function returns: no part of a line is kept. Code
 * that runs on a thread brings a buffer of its own. */
#pragma once

#include "lib/text/strbuf.h"
#include "front/interpreter/escape.h"

#define LINE_TEXT_MAX (64u * 1024) /* bytes of output in one line */

#define LINE_ROOM 256 /* bytes of a line of output besides its text */

enum lines_stream { LINES_STDOUT, LINES_STDERR, LINES_STREAMS_ };

struct lines_buffer {
    char bytes[ESCAPE_ROOM(LINE_TEXT_MAX) + LINE_ROOM];
    size_t len;
};

struct lines {
    void (*write)(void *owner, const char *p, size_t len);
    void *owner;
    struct lines_buffer *buffer;              /* NULL: the shared one */
    struct escape unfinished[LINES_STREAMS_]; /* their last bytes come with later output */
};

void lines_number(struct lines *l, uint32_t n);
void lines_output(struct lines *l, enum lines_stream stream, const void *p, size_t len);
/* No more output comes: unfinished characters are written as U+FFFD. */
void lines_output_end(struct lines *l);
void lines_error(struct lines *l, const struct strbuf *name, const struct strbuf *value,
                 const struct strbuf *traceback);
void lines_keepalive(struct lines *l);
/* `code`: the status that a shell, or a kernel that is gone, ended with; 0: there is none to tell. */
void lines_end(struct lines *l, unsigned code);

/* Parts of a line: text as it is, and text as the inside of a string. lines_flush passes the buffer
 * on. */
void lines_put(struct lines *l, const char *text, size_t len);
void lines_put_str(struct lines *l, const char *text);
void lines_put_text(struct lines *l, struct escape *e, const void *text, size_t len);
void lines_put_text_end(struct lines *l, struct escape *e);
void lines_flush(struct lines *l);
