/* A Content-Type, a NUL, the size of the pieces, a multipart body: read whole and in pieces, with
 * the same outcome. */
#include <assert.h>

#include "lib/text/strbuf.h"
#include "lib/http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct strbuf log;
    bool inside;
    int result;
};

static int on_part(void *arg, const char *name, const char *filename, struct sg_error *e)
{
    struct outcome *o = arg;

    (void)e;
    assert(!o->inside);
    o->inside = true;
    strbuf_addf(&o->log, "<%s|%s>", name, filename);
    return 0;
}

static int on_data(void *arg, const char *data, size_t len, struct sg_error *e)
{
    struct outcome *o = arg;

    (void)e;
    assert(o->inside && len > 0);
    strbuf_add(&o->log, data, len);
    return 0;
}

static int on_part_end(void *arg, struct sg_error *e)
{
    struct outcome *o = arg;

    (void)e;
    assert(o->inside);
    o->inside = false;
    return 0;
}

static const struct multipart_handlers handlers = {on_part, on_data, on_part_end};

static void parse(const char *type, const char *p, size_t len, size_t step, struct outcome *o)
{
    struct multipart *m;
    struct sg_error e;

    strbuf_init(&o->log, 2 * len + 64);
    o->inside = false;
    o->result = multipart_new(type, &handlers, o, &m, &e);
    if (o->result < 0)
        return;
    for (size_t i = 0; i < len && o->result == 0; i += step)
        o->result = multipart_feed(m, p + i, len - i < step ? len - i : step, &e);
    if (o->result == 0)
        o->result = multipart_end(m, &e);
    assert(o->result == 0 ? !o->inside : e.message[0] != '\0');
    multipart_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *type = (const char *)data, *nul = memchr(data, '\0', size);
    struct outcome whole, cut;

    if (!nul || (size_t)(nul - type) + 2 > size)
        return 0;
    size_t step = (uint8_t)nul[1] + 1u, len = size - (size_t)(nul - type) - 2;
    parse(type, nul + 2, len, len + 1, &whole);
    parse(type, nul + 2, len, step, &cut);
    assert(whole.result == cut.result && whole.inside == cut.inside);
    /* An error in a part's headers is found at the same byte; data before it may be told late. */
    assert(whole.log.len == cut.log.len && memcmp(whole.log.buf, cut.log.buf, cut.log.len) == 0);
    strbuf_done(&whole.log);
    strbuf_done(&cut.log);
    return 0;
}
