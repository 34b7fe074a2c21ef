#include "cli/client/payload.h"

#include <signal.h>

#include "lib/text/json.h"
#include "lib/text/base64.h"

#define SHELL "/bin/bash"

static void begin(struct json *j, struct strbuf *out)
{
    strbuf_init(out, PAYLOAD_MAX);
    jw_init(j, out);
    jw_object_begin(j);
}

/* Writes "K=V" strings as the members of an object. */
static void add_pairs(struct json *j, const char *key, const char *const *pairs, size_t n)
{
    if (n == 0)
        return;
    jw_object_begin(jw_key(j, key));
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(pairs[i], '=');
        AUTO(free_p) char *name = strndup(pairs[i], (size_t)(equals - pairs[i]));

        jw_string(jw_key(j, name ? name : ""), equals + 1);
    }
    jw_object_end(j);
}

void payload_text(struct json *j, const char *key, const char *value)
{
    if (!value)
        return;
    jw_string(jw_key(j, key), value);
}

void payload_number(struct json *j, const char *key, uint64_t value)
{
    if (!value)
        return;
    jw_u64(jw_key(j, key), value);
}

void payload_env(struct json *j, const char *key, const struct env_list *env)
{
    add_pairs(j, key, (const char *const *)env->v, env->n);
}

/* ---- control plane --------------------------------------------------------------------------- */

void payload_create(struct strbuf *out, const struct payload_create *b)
{
    struct json j;

    begin(&j, out);
    jw_string(jw_key(&j, "templateID"), b->template);
    jw_u64(jw_key(&j, "timeout"), b->timeout_s);
    add_pairs(&j, "metadata", b->metadata, b->n_metadata);
    payload_env(&j, "envVars", b->env);
    if (b->auto_pause)
        jw_bool(jw_key(&j, "autoPause"), true);
    if (b->secure)
        jw_bool(jw_key(&j, "secure"), true);
    jw_object_end(&j);
}

void payload_timeout(struct strbuf *out, uint64_t seconds)
{
    struct json j;

    begin(&j, out);
    jw_u64(jw_key(&j, "timeout"), seconds);
    jw_object_end(&j);
}

void payload_texts(struct strbuf *out, ...)
{
    const char *key;
    struct json j;
    va_list ap;

    begin(&j, out);
    va_start(ap, out);
    while ((key = va_arg(ap, const char *)))
        payload_text(&j, key, va_arg(ap, const char *));
    va_end(ap);
    jw_object_end(&j);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void add_size(struct json *j, uint16_t rows, uint16_t cols)
{
    jw_object_begin(jw_key(j, "pty"));
    jw_object_begin(jw_key(j, "size"));
    jw_u64(jw_key(j, "cols"), cols);
    jw_u64(jw_key(j, "rows"), rows);
    jw_object_end(j);
    jw_object_end(j);
}

/* A single word with blanks in it was meant for a shell. Several words are a program and its
 * arguments. */
static void add_command(struct json *j, char **command)
{
    bool shell = !command[1] && strpbrk(command[0], " \t\n");

    jw_string(jw_key(j, "cmd"), shell ? SHELL : command[0]);
    jw_array_begin(jw_key(j, "args"));
    if (shell) {
        jw_string(j, "-l");
        jw_string(j, "-c");
        jw_string(j, command[0]);
    }
    for (char **arg = command + 1; *arg; arg++)
        jw_string(j, *arg);
    jw_array_end(j);
}

void payload_start(struct strbuf *out, const struct payload_start *b)
{
    struct json j;

    begin(&j, out);
    jw_object_begin(jw_key(&j, "process"));
    add_command(&j, b->command);
    payload_env(&j, "envs", b->env);
    payload_text(&j, "cwd", b->cwd);
    jw_object_end(&j);
    if (b->pty)
        add_size(&j, b->rows, b->cols);
    else
        jw_bool(jw_key(&j, "stdin"), b->stdin_open);
    jw_object_end(&j);
}

/* Begins a request about a process. */
static void begin_process(struct json *j, struct strbuf *out, uint32_t pid)
{
    begin(j, out);
    jw_object_begin(jw_key(j, "process"));
    jw_u64(jw_key(j, "pid"), pid);
    jw_object_end(j);
}

void payload_input(struct strbuf *out, uint32_t pid, bool pty, const void *data, size_t len)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(PAYLOAD_MAX);
    struct json j;

    base64_encode(&text, data, len);
    begin_process(&j, out, pid);
    jw_object_begin(jw_key(&j, "input"));
    jw_string(jw_key(&j, pty ? "pty" : "stdin"), text.buf);
    jw_object_end(&j);
    jw_object_end(&j);
}

void payload_process(struct strbuf *out, uint32_t pid)
{
    struct json j;

    begin_process(&j, out, pid);
    jw_object_end(&j);
}

void payload_signal(struct strbuf *out, uint32_t pid, int sig)
{
    struct json j;

    begin_process(&j, out, pid);
    jw_string(jw_key(&j, "signal"), sig == SIGKILL ? "SIGNAL_SIGKILL" : "SIGNAL_SIGTERM");
    jw_object_end(&j);
}

void payload_resize(struct strbuf *out, uint32_t pid, uint16_t rows, uint16_t cols)
{
    struct json j;

    begin_process(&j, out, pid);
    add_size(&j, rows, cols);
    jw_object_end(&j);
}

/* ---- files ----------------------------------------------------------------------------------- */

void payload_list(struct strbuf *out, const char *path, uint32_t depth)
{
    struct json j;

    begin(&j, out);
    jw_string(jw_key(&j, "path"), path);
    jw_u64(jw_key(&j, "depth"), depth);
    jw_object_end(&j);
}
