/* Reads the results that a cell's kernel noted in a file, after the cell has ended. The code in the
 * cell can write to that file too, so lines that are not JSON objects are left out. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/json_check.h"
#include "lib/channel/wire.h"
#include "engine/sandbox.h"

#define RESULTS_MAX (32u << 20)
#define RESULTS_NS  10000000000ull

struct reading {
    struct call call;
    struct strbuf data;
};

static void keep(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    strbuf_add(&CONTAINER_OF(c, struct reading, call)->data, p, len);
}

/* The last line may be cut short, by RESULTS_MAX or by the end of the program. */
static void give_lines(const struct sg_exec *x, const struct strbuf *data)
{
    const char *line = data->buf, *end = data->buf + data->len, *stop;

    for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1)
        if (json_check_object(line, (size_t)(stop - line)))
            x->on_result(x->on_result_arg, line, (size_t)(stop - line));
}

static int call(struct sg_sandbox *s, struct call *c, enum chan_op op, const struct strbuf *request)
{
    int r = session_call_begin(s->session, c, op, request, NULL);

    return r < 0 ? r : session_wait(s->session, c, clock_ns() + RESULTS_NS, NULL);
}

void results_give(struct sg_sandbox *s, const struct sg_exec *x, const char *path)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);
    AUTO(strbuf_done) struct strbuf removal = strbuf_upto(OPS_OPEN_MAX);
    struct reading r = {.call.on_data = keep};
    struct call removed = {0};
    const char *user = x->user ? x->user : "user";

    strbuf_init(&r.data, RESULTS_MAX);
    wire_put_str(&request, user);
    wire_put_str(&request, path);
    wire_put_u64(&request, 0);
    wire_put_u64(&request, RESULTS_MAX);
    /* A cell without results has no file. */
    if (call(s, &r.call, OP_FILE_READ, &request) == 0 && r.call.status == 0)
        give_lines(x, &r.data);
    session_call_done(&r.call);
    strbuf_done(&r.data);
    if (s->one_shot)
        return;
    wire_put_str(&removal, user);
    wire_put_str(&removal, path);
    wire_put_u32(&removal, 0);
    call(s, &removed, OP_FILE_REMOVE, &removal);
    session_call_done(&removed);
}
