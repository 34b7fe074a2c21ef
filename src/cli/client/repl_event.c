#include "cli/client/repl_event.h"

#include "cli/client/jr.h"

static const char *const kinds[] = {
    [REPL_EVENT_OTHER] = "",
    [REPL_EVENT_COUNT] = "number_of_executions",
    [REPL_EVENT_STDOUT] = "stdout",
    [REPL_EVENT_STDERR] = "stderr",
    [REPL_EVENT_RESULT] = "result",
    [REPL_EVENT_ERROR] = "error",
    [REPL_EVENT_END] = "end_of_execution",
};
_Static_assert(ARRAY_SIZE(kinds) == REPL_EVENT_MAX_, "a name for each kind");

struct repl_text repl_event_text(const struct repl_event *event, const char *key)
{
    const json_t *value = json_object_get(event->object, key);

    if (!json_is_string(value))
        return (struct repl_text){.text = ""};
    return (struct repl_text){.text = json_string_value(value), .len = json_string_length(value)};
}

static int take_line(const char *line, size_t len, repl_event_fn *fn, void *arg, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *tree = NULL;
    int r = jr_parse(line, len, &tree, e);

    if (r < 0)
        return r;
    if (!json_is_object(tree))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not an event");
    struct repl_event event = {.object = tree, .line = line, .len = len};
    const char *type = jr_text(tree, "type");
    for (size_t i = 1; i < ARRAY_SIZE(kinds); i++)
        if (strcmp(type, kinds[i]) == 0)
            event.kind = (enum repl_event_kind)i;
    event.count = jr_count(tree, "execution_count");
    event.main = jr_flag(tree, "is_main_result");
    return fn(arg, &event, e);
}

int repl_events_feed(struct strbuf *pending, const char *data, size_t len, repl_event_fn *fn,
                     void *arg, struct sg_error *e)
{
    int result = 0;

    while (len > 0 && result == 0) {
        const char *end = memchr(data, '\n', len);
        size_t piece = end ? (size_t)(end - data) : len;

        strbuf_add(pending, data, piece);
        if (pending->truncated)
            return err_set(e, SG_ERR_INTERNAL, -EPROTO, "a line of the server is too long");
        data += piece;
        len -= piece;
        if (!end)
            continue;
        data++;
        len--;
        if (pending->len > 0)
            result = take_line(pending->buf, pending->len, fn, arg, e);
        strbuf_reset(pending);
    }
    return result;
}
