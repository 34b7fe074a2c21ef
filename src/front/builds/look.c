#include "front/builds/look.h"

#include <stdio.h>
#include <string.h>

#include "lib/channel/wire.h"

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
}

/* ---- a path ---------------------------------------------------------------------------------- */

static void on_stat(struct call *c, int status, const char *message UNUSED,
                    const void *result UNUSED, size_t len UNUSED)
{
    struct look *l = c->owner;

    l->done(l, status == 0 ? "" : "it is not there");
}

int look_at_path(struct look *l, const char *path, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_PATH_MAX + 64);

    wire_put_str(&request, "root");
    wire_put_str(&request, path);
    l->call = (struct call){.owner = l, .uncounted = true, .on_end = on_stat};
    return call_begin(&l->call, l->sandbox, OP_FILE_STAT, &request, e);
}
