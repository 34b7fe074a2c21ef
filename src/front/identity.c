#include "front/identity.h"

#include <stdio.h>
#include <string.h>

#include "channel/wire.h"
#include "front/call.h"

#define DIR "/run/e2b/."

static void on_written(struct call *c, int status, const char *message, const void *result,
                       size_t len)
{
    (void)result, (void)len;
    if (status > 0)
        box_log_add(&c->box->log, LOG_WARN, SOURCE_SERVER, 0, "%s could not be written: %s",
                    (const char *)c->owner, message);
    box_unref(c->box);
    free(c);
}

static void write_file(struct box *b, const char *path, const char *text)
{
    struct call *c = xcalloc(1, sizeof *c);
    AUTO(strbuf_done) struct strbuf q = {0};

    strbuf_init(&q, 1024);
    wire_put_str(&q, "root");
    wire_put_str(&q, path);
    wire_put_u32(&q, 0644);
    wire_put_u32(&q, FILE_PARENTS);
    wire_put_u32(&q, 0);
    c->owner = (void *)(uintptr_t)path;
    c->on_end = on_written;
    if (call_begin(c, b, OP_FILE_WRITE, &q, NULL) < 0) {
        free(c);
        return;
    }
    box_ref(b);
    call_send(c, 0, text, strlen(text));
    call_eof(c);
}

void identity_write(struct box *b)
{
    box_cork(b);
    write_file(b, DIR "E2B_SANDBOX", "true");
    write_file(b, DIR "E2B_SANDBOX_ID", b->id);
    write_file(b, DIR "E2B_TEMPLATE_ID", b->spec.template_id);
    box_uncork(b);
}

void identity_envs(const struct box *b, void (*fn)(void *arg, const char *name, const char *value),
                   void *arg)
{
    const char *name;
    json_t *value;

    json_object_foreach(b->spec.envs, name, value) fn(arg, name, json_string_value(value));
    fn(arg, "E2B_SANDBOX", "true");
    fn(arg, "E2B_SANDBOX_ID", b->id);
    fn(arg, "E2B_TEMPLATE_ID", b->spec.template_id);
}
