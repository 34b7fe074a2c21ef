/* The JSON that we send. Each function starts the buffer anew. A body that is too large is marked
 * as truncated, and the caller then refuses to send it. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/shared/env_list.h"

#define PAYLOAD_MAX (16u * 1024 * 1024)

struct payload_create {
    const char *template;
    uint64_t timeout_s;
    const struct env_list *env;
    const char *const *metadata; /* "K=V" */
    size_t n_metadata;
    bool auto_pause;
    bool secure; /* sent explicitly, because the route's first version needs it */
};

struct payload_start {
    char **command; /* NULL-terminated */
    const struct env_list *env;
    const char *cwd; /* NULL: the user's home */
    bool pty, stdin_open;
    uint16_t rows, cols; /* the terminal's size */
};

void payload_create(struct strbuf *out, const struct payload_create *b);
void payload_timeout(struct strbuf *out, uint64_t seconds);
/* An object of texts: key, value, key, value, ..., NULL. A value that is NULL is left out. */
void payload_texts(struct strbuf *out, ...) __attribute__((sentinel));

/* Members of an object. A text that is NULL, and a number that is 0, is left out; so are variables
 * if there are none. */
struct json;
void payload_text(struct json *j, const char *key, const char *value);
void payload_number(struct json *j, const char *key, uint64_t value);
void payload_env(struct json *j, const char *key, const struct env_list *env);

/* Messages for the service process.Process. */
void payload_start(struct strbuf *out, const struct payload_start *b);
void payload_input(struct strbuf *out, uint32_t pid, bool pty, const void *data, size_t len);
void payload_process(struct strbuf *out, uint32_t pid);
void payload_signal(struct strbuf *out, uint32_t pid, int sig); /* SIGTERM or SIGKILL */
void payload_resize(struct strbuf *out, uint32_t pid, uint16_t rows, uint16_t cols);

/* Messages for the service filesystem.Filesystem. */
void payload_list(struct strbuf *out, const char *path, uint32_t depth);
