/* Reads the results that a cell's kernel noted in a file, after the cell has ended. The code in the
 * cell can write to that file too, so lines that are not JSON objects are left out. */
#include <string.h>

#include "lib/base/clock.h"
#include "lib/text/json_check.h"
#include "lib/channel/wire.h"
#include "engine/sandbox.h"

#define RESULTS_MAX (32u << 20)
#define RESULTS_MS  10000

/* The last line may be cut short, by RESULTS_MAX or by the end of the program. */
static void give_lines(const struct sg_exec *x, const struct strbuf *data)
{
    const char *line = data->buf, *end = data->buf + data->len, *stop;

    for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1)
        if (json_check_object(line, (size_t)(stop - line)))
            x->on_result(x->on_result_arg, line, (size_t)(stop - line));
}

void results_give(struct sg_sandbox *s, const struct sg_exec *x, const char *path)
{
    AUTO(strbuf_done) struct strbuf results = strbuf_upto(RESULTS_MAX);
    AUTO(strbuf_done) struct strbuf removal = strbuf_upto(OPS_OPEN_MAX);
    struct call removed = {0};
    const char *user = x->user ? x->user : "user";

    /* A cell without results has no file. */
    if (file_read_into(s->chan, user, path, RESULTS_MS, &results, NULL) == 0)
        give_lines(x, &results);
    if (s->one_shot)
        return;
    wire_put_str(&removal, user);
    wire_put_str(&removal, path);
    wire_put_u32(&removal, 0);
    if (session_call_begin(s->chan, &removed, OP_FILE_REMOVE, &removal, NULL) == 0)
        session_wait(s->chan, &removed, clock_ns() + RESULTS_MS * 1000000ull, NULL);
    session_call_done(&removed);
}
