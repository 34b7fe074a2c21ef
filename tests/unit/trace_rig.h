/* Traces without a network: exporter_post is this file's, which keeps what it is given and answers
 * when it is told to. */
#pragma once

#include <uv.h>

#include "lib/text/strbuf.h"
#include "lib/settings/settings.h"
#include "tap.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/exporter.h"
#include "front/telemetry/trace.h"

#define POSTS_MAX 64

/* As it was handed over. */
struct posted {
    struct exporter_post post; /* its pointers are gone, but for done and arg */
    char url[512], type[64], headers[1024];
    char *body;
    size_t len;
    bool answered;
};

static struct {
    struct posted posts[POSTS_MAX];
    size_t n;
    int refuse; /* what exporter_post returns next */
    uv_loop_t *loop;
    bool flushed;
} rig;

int exporter_post(struct exporter *h, const struct exporter_post *post)
{
    struct posted *p = &rig.posts[rig.n];
    struct strbuf headers;

    (void)h;
    if (rig.refuse)
        return rig.refuse;
    if (rig.n == POSTS_MAX)
        return -EAGAIN;
    rig.n++;
    *p = (struct posted){.post = *post, .len = post->len, .body = malloc(post->len + 1)};
    memcpy(p->body, post->body, post->len);
    p->body[post->len] = '\0';
    snprintf(p->url, sizeof(p->url), "%s", post->url);
    snprintf(p->type, sizeof(p->type), "%s", post->content_type);
    strbuf_init(&headers, sizeof(p->headers) - 1);
    for (size_t i = 0; i < EXPORTER_HEADERS && post->headers[i].name; i++)
        strbuf_addf(&headers, "%s: %s\n", post->headers[i].name,
                    hidden_reveal(post->headers[i].value));
    snprintf(p->headers, sizeof(p->headers), "%s", headers.buf);
    strbuf_done(&headers);
    return 0;
}

/* What is due is done. */
static inline void rig_turn(void)
{
    uv_run(rig.loop, UV_RUN_NOWAIT);
    uv_run(rig.loop, UV_RUN_NOWAIT);
}

static inline void rig_answer(size_t i, int status, uint64_t retry_after_ms)
{
    rig.posts[i].answered = true;
    rig.posts[i].post.done(rig.posts[i].post.arg, status, retry_after_ms);
    rig_turn();
}

/* Nothing of it is left. */
static inline void rig_forget(void)
{
    for (size_t i = 0; i < rig.n; i++) {
        if (!rig.posts[i].answered)
            rig_answer(i, 200, 0);
        free(rig.posts[i].body);
    }
    rig.n = 0;
}

static inline void rig_flushed(void *arg)
{
    (void)arg;
    rig.flushed = true;
}

/* All that waits goes out, and is taken. */
static inline void rig_flush(void)
{
    size_t i = rig.n;

    rig.flushed = false;
    trace_flush(rig_flushed, NULL);
    rig_turn();
    for (; !rig.flushed && i < rig.n; i++)
        rig_answer(i, 200, 0);
    EXPECT(rig.flushed);
}

/* settings as lines of the file. */
static inline void rig_configure(const char *text)
{
    static char some;
    struct settings s;
    struct sg_error e = {0};
    char *copy = xstrdup(text);

    settings_init(&s);
    EXPECT(settings_parse_text(&s, "test", copy, &e) == 0);
    free(copy);
    if (!rig.loop)
        rig.loop = uv_default_loop();
    trace_configure(&s, (struct exporter *)(void *)&some, rig.loop);
}

/* So far. */
static inline double rig_counted(const char *fate)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char line[128];

    strbuf_init(&out, 1024 * 1024);
    figures_print(&out);
    snprintf(line, sizeof(line), "sandglass_trace_spans_total{fate=\"%s\"} ", fate);
    const char *at = strstr(out.buf, line);
    return at ? strtod(at + strlen(line), NULL) : 0;
}
