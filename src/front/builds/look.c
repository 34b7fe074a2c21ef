#include "front/builds/look.h"

#include <stdio.h>
#include <string.h>

#include "front/core/shell.h"
#include "lib/channel/wire.h"

#define PYTHON_MS 30000

const char *looked_find(const struct looked *l, const char *key)
{
    for (size_t i = 0; i < LOOKED_MAX; i++)
        if (l->all[i].key[0] && strcmp(l->all[i].key, key) == 0)
            return l->all[i].text;
    return NULL;
}

void looked_add(struct looked *l, const char *key, const char *text)
{
    size_t i = l->n++ % LOOKED_MAX;

    snprintf(l->all[i].key, sizeof(l->all[i].key), "%s", key);
    snprintf(l->all[i].text, sizeof(l->all[i].text), "%s", text);
}

void look_cancel(struct look *l)
{
    call_cancel(&l->call);
    strbuf_done(&l->said);
}

/* ---- a path ---------------------------------------------------------------------------------- */

static void on_stat(struct call *c, int status, const char *message UNUSED,
                    const void *result UNUSED, size_t len UNUSED)
{
    struct look *l = c->owner;

    l->done(l, status == 0 ? "" : "it is not there", "");
}

int look_at_path(struct look *l, const char *path, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_PATH_MAX + 64);

    wire_put_str(&request, "root");
    wire_put_str(&request, path);
    l->call = (struct call){.owner = l, .uncounted = true, .on_end = on_stat};
    return call_begin(&l->call, l->sandbox, OP_FILE_STAT, &request, e);
}

/* ---- Python ---------------------------------------------------------------------------------- */

/* Runs what kernels run, with no code, and counts the threads of a Python that has just started: a
 * kernel that has more than one cannot be copied. The last line that it wrote is written again. */
#define PYTHON "/usr/bin/python3"
static const char try_python[] =
    "[ -x " PYTHON " ] || exit 101\n"
    "why=$(" PYTHON
    " /usr/local/lib/sandglass/kernels/python --once /dev/null 2>&1 >/dev/null) ||\n"
    "    { echo \"${why##*$'\\n'}\"; exit 102; }\n"
    "n=$(" PYTHON " -c 'import os; print(len(os.listdir(\"/proc/self/task\")))')\n"
    "[ \"$n\" = 1 ] || exit 103\n";

/* Without another end, nothing is known: the image may have no shell. */
static const struct {
    const char *end, *text;
} python_ends[] = {
    {"exit status 101", "cells in Python cannot run: there is no " PYTHON},
    {"exit status 102", "cells in Python cannot run: " PYTHON " fails"},
    {"exit status 103", "kernels start cold, and are not copied: " PYTHON " starts threads"},
};

static void ignore_event(struct call *c UNUSED, uint8_t what UNUSED, const void *p UNUSED,
                         size_t len UNUSED)
{
}

static void on_python_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct look *l = c->owner;

    if (sub == CHAN_STDOUT)
        strbuf_add(&l->said, p, len);
    call_consumed(c, len);
}

/* A shell's profile may have written lines before it. */
static void take_last_line(struct strbuf *said, char ret[LOOKED_TEXT])
{
    while (said->len > 0 && said->buf[said->len - 1] == '\n')
        said->buf[--said->len] = '\0';
    const char *line = said->len > 0 ? memrchr(said->buf, '\n', said->len) : NULL;
    snprintf(ret, LOOKED_TEXT, "%s", line ? line + 1 : said->buf);
}

static void on_python_end(struct call *c, int status, const char *message UNUSED,
                          const void *result, size_t len)
{
    struct look *l = c->owner;
    char words[LOOKED_TEXT] = "";
    struct shell_end end = {.text = ""};
    const char *text = "";

    if (status == 0 && shell_end_read(result, len, &end) == 0)
        for (size_t i = 0; i < ARRAY_SIZE(python_ends); i++)
            if (strcmp(end.text, python_ends[i].end) == 0)
                text = python_ends[i].text;
    if (text[0])
        take_last_line(&l->said, words);
    strbuf_done(&l->said);
    l->done(l, text, words);
}

int look_at_python(struct look *l, struct sg_error *e)
{
    struct shell sh = {.command = try_python,
                       .user = "user",
                       .cwd = "/",
                       .envs = l->envs,
                       .timeout_ms = PYTHON_MS};

    l->said = strbuf_upto(4 * LOOKED_TEXT);
    l->call = (struct call){.owner = l,
                            .uncounted = true,
                            .on_event = ignore_event,
                            .on_data = on_python_data,
                            .on_end = on_python_end};
    return shell_begin(&l->call, l->sandbox, &sh, e);
}
