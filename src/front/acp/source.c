/* Unpacks source code in a sandbox. A program of ours (kernels/acp/unpack.py) reads the tar or the
 * bundle inside, as the agent's user. It writes an error to its standard error, and its exit status
 * says whose fault the error is. */
#include <stdio.h>
#include <string.h>

#include "front/acp/impl.h"
#include "lib/text/base64.h"
#include "lib/channel/wire.h"
#include "front/core/identity.h"

#define UNPACK      "/usr/local/lib/sandglass/kernels/acp/unpack.py"
#define TIMEOUT_MS  (150 * 1000)
#define SAID_MAX    512
#define BAD_INPUT   65 /* exit statuses of the program */
#define NO_ROOM     73
#define NO_PROGRAM  127
#define CANNOT_OPEN 66 /* exit status of the shell around it */

struct source_run {
    struct hosted *agent;
    struct call call;
    struct strbuf data; /* the tar or the bundle */
    struct strbuf said; /* the program's standard error */
};

void source_cancel(struct source_run *s)
{
    if (!s)
        return;
    call_cancel(&s->call);
    strbuf_done(&s->data);
    strbuf_done(&s->said);
    free(s);
}

static void fail(struct source_run *s, enum sg_error_kind kind, int code, const char *what)
{
    struct hosted *h = s->agent;
    struct sg_error e = {0};

    err_set(&e, kind, code, "the agent's source: %.480s", what);
    source_cancel(steal_ptr(&h->source));
    hosted_fail_start(h, &e);
}

/* ---- end of the program ---------------------------------------------------------------------- */

/* The first line of the program's error: line ends would break an answer. */
static const char *said(struct source_run *s)
{
    char *p = s->said.buf;
    size_t n = strcspn(p, "\r\n");

    if (s->said.len > 0)
        p[n] = '\0';
    return n > 0 ? p : "the archive cannot be unpacked";
}

static void judge(struct source_run *s, bool killed, bool timed_out, uint32_t status)
{
    struct hosted *h = s->agent;

    if (timed_out)
        fail(s, SG_ERR_INVALID, -ETIMEDOUT, "unpacking took too long");
    else if (killed)
        fail(s, SG_ERR_LIMIT, -ENOSPC,
             "the program that unpacks was killed, as when memory runs out");
    else if (status == NO_ROOM)
        fail(s, SG_ERR_LIMIT, -ENOSPC, said(s));
    else if (status == NO_PROGRAM)
        fail(s, SG_ERR_UNSUPPORTED, -ENOSYS, said(s));
    else if (status == CANNOT_OPEN)
        fail(s, SG_ERR_INVALID, -ENOENT, "'path' cannot be read in the sandbox");
    else if (status != 0)
        fail(s, SG_ERR_INVALID, -EINVAL, said(s));
    else {
        source_cancel(steal_ptr(&h->source));
        hosted_begin(h);
    }
}

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct source_run *s = c->owner;
    struct wire_reader r = wire_reader_of(result, len);

    if (status == CALL_GONE) {
        struct sg_error e;

        sandbox_gone_error(s->agent->sandbox, &e);
        fail(s, e.kind, e.code, e.message);
        return;
    }
    if (status != 0) {
        fail(s, SG_ERR_INVALID, -status, message);
        return;
    }
    bool killed = wire_get_u32(&r) == PROC_KILLED;
    uint32_t code = wire_get_u32(&r);
    for (int i = 0; i < 4; i++)
        wire_get_u64(&r);
    wire_get_u32(&r);
    wire_get_u64(&r);
    wire_get_u64(&r);
    bool timed_out = wire_get_u32(&r) != 0;
    wire_get_u64(&r); /* memory_limit */
    if (wire_done(&r))
        judge(s, killed, timed_out, code);
    else
        fail(s, SG_ERR_INTERNAL, -EPROTO, "the sandbox sent a malformed answer");
}

static void on_data(struct call *c, uint8_t sub, const void *p, size_t len)
{
    struct source_run *s = c->owner;

    if (sub == CHAN_STDERR)
        strbuf_add(&s->said, p, len < SAID_MAX - s->said.len ? len : SAID_MAX - s->said.len);
    call_consumed(c, len);
}

/* ---- start of the program -------------------------------------------------------------------- */

static void put_command(const struct agent_ask *ask, struct strbuf *request)
{
    const char *const direct[] = {"/usr/bin/python3", "-I", UNPACK,
                                  ask->source == SOURCE_TAR ? "tar" : "bundle", ask->into};
    const char *const shell[] = {"/bin/sh", "-c",
                                 "f=$1; shift; exec <\"$f\" || exit 66; exec \"$@\"", "sh"};
    /* The program runs in the home, so "~/x" and "x" are the same. */
    const char *path = ask->source_path;
    size_t n = path ? ARRAY_SIZE(shell) + 1 : 0;

    wire_put_u32(request, (uint32_t)(n + ARRAY_SIZE(direct)));
    for (size_t i = 0; path && i < ARRAY_SIZE(shell); i++)
        wire_put_str(request, shell[i]);
    if (path)
        wire_put_str(request, strncmp(path, "~/", 2) == 0 ? path + 2 : path);
    for (size_t i = 0; i < ARRAY_SIZE(direct); i++)
        wire_put_str(request, direct[i]);
}

static int decode(struct source_run *s, const struct agent_ask *ask)
{
    strbuf_init(&s->data, AGENT_BODY_MAX);
    if (!ask->source_data)
        return 0;
    int r = base64_decode(&s->data, ask->source_data, strlen(ask->source_data));
    return r < 0 || s->data.truncated ? -EINVAL : 0;
}

void source_put(struct hosted *h)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    struct source_run *s = h->source =
        NEW(struct source_run, .agent = h, .said = strbuf_upto(SAID_MAX));
    struct sg_error e = {0};

    if (decode(s, &h->ask) < 0) {
        fail(s, SG_ERR_INVALID, -EINVAL, "'data' is not base64");
        return;
    }
    wire_put_str(&request, h->ask.user);
    wire_put_str(&request, "");
    wire_put_u32(&request, PROC_STDIN);
    wire_put_u32(&request, 0);
    wire_put_u32(&request, 0);
    wire_put_u64(&request, TIMEOUT_MS);
    wire_put_str(&request, "");
    wire_put_str(&request, "");
    put_command(&h->ask, &request);
    identity_put_envs(h->sandbox, NULL, NULL, &request);
    s->call = (struct call){.owner = s, .uncounted = true, .on_data = on_data, .on_end = on_end};
    if (call_begin(&s->call, h->sandbox, OP_PROCESS_START, &request, &e) < 0)
        fail(s, e.kind, e.code, e.message);
    else
        call_pour(&s->call, s->data.buf, s->data.len);
}
