#include "pull/report.h"

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "pull/fault.h"

#define LINE_MAX_BYTES (2 * DOCUMENT_MAX) /* a config, escaped */
#define EVERY_NS       200000000ull

static void begin(struct json *j, struct strbuf *out, const char *what)
{
    jw_init(j, out);
    jw_object_begin(j);
    jw_object_begin(jw_key(j, what));
}

static int end(struct json *j)
{
    jw_object_end(j);
    jw_object_end(j);
    strbuf_addch(j->out, '\n');
    if (j->out->truncated)
        return -EFBIG;
    return fd_write_all(STDOUT_FILENO, j->out->buf, j->out->len);
}

static int tell(struct report *r, uint64_t bytes)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(1024);
    struct json j;

    r->told_ns = clock_ns();
    begin(&j, &out, "progress");
    jw_u64(jw_key(&j, "layer"), r->layer);
    jw_u64(jw_key(&j, "of"), r->of);
    jw_u64(jw_key(&j, "bytes"), bytes);
    jw_u64(jw_key(&j, "total"), r->total);
    return end(&j);
}

int report_layer(struct report *r, size_t layer, size_t of, uint64_t total)
{
    *r = (struct report){.layer = layer, .of = of, .total = total};
    return tell(r, 0);
}

int report_progress(struct report *r, uint64_t bytes)
{
    return bytes < r->total && clock_ns() - r->told_ns < EVERY_NS ? 0 : tell(r, bytes);
}

int report_ready(size_t i, const struct manifest *m, const struct config *c)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(1024);
    struct json j;

    begin(&j, &out, "layer");
    jw_u64(jw_key(&j, "layer"), i + 1);
    jw_u64(jw_key(&j, "of"), m->n_layers);
    jw_string(jw_key(&j, "digest"), m->layers[i].digest.text);
    jw_string(jw_key(&j, "diffId"), c->diff_ids[i].text);
    return end(&j);
}

int report_waiting(uint64_t ms, const char *why)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8192);
    struct json j;

    begin(&j, &out, "waiting");
    jw_u64(jw_key(&j, "milliseconds"), ms);
    jw_string(jw_key(&j, "why"), why);
    return end(&j);
}

static void add_words(struct json *j, const char *name, const json_t *words)
{
    const json_t *word;
    size_t i;

    jw_array_begin(jw_key(j, name));
    json_array_foreach(words, i, word)
    {
        jw_string(j, json_string_value(word));
    }
    jw_array_end(j);
}

static void add_layers(struct json *j, const struct manifest *m, const struct config *c)
{
    jw_array_begin(jw_key(j, "layers"));
    for (size_t i = 0; i < m->n_layers; i++) {
        jw_object_begin(j);
        jw_string(jw_key(j, "digest"), m->layers[i].digest.text);
        jw_string(jw_key(j, "mediaType"), m->layers[i].media_type);
        jw_u64(jw_key(j, "size"), m->layers[i].size);
        jw_string(jw_key(j, "diffId"), c->diff_ids[i].text);
        jw_object_end(j);
    }
    jw_array_end(j);
}

int report_result(const struct manifest *m, const struct config *c, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(LINE_MAX_BYTES);
    struct json j;
    int r;

    begin(&j, &out, "result");
    jw_string(jw_key(&j, "digest"), m->digest.text);
    jw_string(jw_key(&j, "configDigest"), m->config.digest.text);
    jw_string(jw_key(&j, "architecture"), c->architecture);
    jw_object_begin(jw_key(&j, "config"));
    add_words(&j, "Env", c->env);
    jw_string(jw_key(&j, "WorkingDir"), c->working_dir);
    jw_string(jw_key(&j, "User"), c->user);
    add_words(&j, "Entrypoint", c->entrypoint);
    add_words(&j, "Cmd", c->cmd);
    jw_object_end(&j);
    add_layers(&j, m, c);
    r = end(&j);
    if (r == -EFBIG)
        return fault_limit(e, "the image's config is too long");
    return r < 0 ? fault_cancelled(e, "nobody reads the result") : 0;
}

void report_error(const struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(8192);
    struct json j;

    begin(&j, &out, "error");
    jw_string(jw_key(&j, "code"), fault_word(e->code));
    jw_string(jw_key(&j, "message"), e->message);
    end(&j);
}
