/* read_file: text as text, pictures as pictures, other bytes as a resource. */
#include <inttypes.h>
#include <string.h>

#include "lib/text/base64.h"
#include "lib/channel/wire.h"
#include "front/mcp/catalogue.h"
#include "front/mcp/files.h"
#include "front/mcp/media.h"

#define READ_MAX (4u * 1024 * 1024) /* bytes of one call */

struct reading {
    struct file_work w;
    uint64_t offset, length, size;
    char path[OPS_PATH_MAX]; /* as the sandbox resolved it; "": not known yet */
};

static struct reading *reading_of(struct file_work *w)
{
    return CONTAINER_OF(w, struct reading, w);
}

static void on_event(struct call *c, uint8_t what, const void *p, size_t len)
{
    struct reading *g = reading_of(c->owner);
    struct file_entry entry;

    if (what != EVENT_ENTRY || g->path[0])
        return;
    if (!file_entry_read(p, len, &entry)) {
        file_fail(&g->w, EPROTO, "the sandbox sent a malformed answer");
        return;
    }
    g->size = entry.size;
    snprintf(g->path, sizeof(g->path), "%s", entry.path);
}

static void on_data(struct call *c, uint8_t sub UNUSED, const void *p, size_t len)
{
    struct reading *g = reading_of(c->owner);

    strbuf_add(&g->w.bytes, p, len);
    call_consumed(c, len);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_bytes(struct result *r, const struct reading *g, const char *picture)
{
    AUTO(strbuf_done) struct strbuf base64 = strbuf_upto(g->w.bytes.len * 4 / 3 + 8);

    base64_encode(&base64, g->w.bytes.buf, g->w.bytes.len);
    if (picture)
        result_image(r, picture, base64.buf, base64.len);
    else
        result_resource(r, "application/octet-stream", g->path, NULL, base64.buf, base64.len);
}

static void put_data(struct strbuf *out, const struct reading *g)
{
    struct json j = {.out = out};

    strbuf_init(out, 16 * OPS_PATH_MAX);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "path"), g->path, strlen(g->path));
    jw_u64(jw_key(&j, "size"), g->size);
    jw_u64(jw_key(&j, "offset"), g->offset);
    jw_u64(jw_key(&j, "length"), g->w.bytes.len);
    jw_object_end(&j);
}

static void on_end(struct call *c, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct reading *g = reading_of(c->owner);
    AUTO(strbuf_done) struct strbuf data = {0};
    struct result r;

    if (status != 0 || g->w.bytes.truncated || !g->path[0]) {
        file_fail(&g->w, status ? status : EPROTO, message);
        return;
    }
    bool whole = g->offset == 0 && g->w.bytes.len == g->size;
    const char *picture = whole ? media_picture(g->w.bytes.buf, g->w.bytes.len) : NULL;
    result_begin(&r, g->w.c->x->version);
    if (!picture && media_is_text(g->w.bytes.buf, g->w.bytes.len, !whole))
        result_text(&r, g->w.bytes.buf, g->w.bytes.len);
    else
        put_bytes(&r, g, picture);
    if (g->offset + g->w.bytes.len < g->size)
        result_textf(
            &r, "(bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64 "; ask for the rest with offset)",
            g->offset, g->offset + g->w.bytes.len, g->size);
    put_data(&data, g);
    result_end(&r, false, data.buf, data.len);
    file_done(&g->w, &r);
}

/* ---- the request ----------------------------------------------------------------------------- */

static void ask_agent(struct file_work *w)
{
    struct reading *g = reading_of(w);
    AUTO(strbuf_done) struct strbuf request = file_request(w);

    wire_put_u64(&request, g->offset);
    wire_put_u64(&request, g->length);
    w->call = (struct call){.owner = w, .on_event = on_event, .on_data = on_data, .on_end = on_end};
    file_call(w, OP_FILE_READ, &request);
}

static void begin(struct mcp_call *c)
{
    struct reading *g =
        NEW(struct reading, .w = {.begin = ask_agent, .bytes = strbuf_upto(READ_MAX)},
            .offset = mcp_call_number(c, "offset", 0, INT64_MAX, 0));

    g->length = mcp_call_number(c, "length", 1, READ_MAX, READ_MAX);
    file_begin(c, &g->w, NULL);
}

static const struct mcp_field fields[] = {
    {"path", "string", "Absolute, or relative to /home/user.", true, NULL},
    {"offset", "integer", "First byte. Default: 0.", false, NULL},
    {"length", "integer", "How many bytes at most. Default, and most: 4 MiB.", false, NULL},
    MCP_CONVERSATION,
    MCP_PATH,
    {0},
};

const struct mcp_tool read_file_tool = {
    .name = "read_file",
    .title = "Read a file",
    .description =
        "Reads a file in the sandbox of the path. Text comes as text, PNG, JPEG, GIF and "
        "WebP as an image, anything else as a binary resource.",
    .fields = fields,
    .begin = begin,
    .reads_only = true,
    .repeatable = true,
};
