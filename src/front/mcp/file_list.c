/* list_files: the entries of a directory. */
#include <inttypes.h>
#include <string.h>

#include "lib/channel/wire.h"
#include "front/mcp/catalogue.h"
#include "front/mcp/files.h"

#define ENTRIES_MAX 1000
#define DEPTH_MAX   10
#define LIST_MAX    (1024u * 1024) /* bytes of the text, and of the data */
#define HOME        "/home/user"

struct listing {
    struct file_work w;
    uint64_t depth;
    struct json j;
    size_t n;
    bool more;
};

static struct listing *listing_of(struct file_work *w)
{
    return CONTAINER_OF(w, struct listing, w);
}

static const char *type_text(uint32_t type)
{
    static const char *const texts[] = {"other", "file", "directory", "link"};

    return type < ARRAY_SIZE(texts) ? texts[type] : texts[ENTRY_OTHER];
}

static void add_entry(struct listing *g, const struct file_entry *f)
{
    if (f->type == ENTRY_DIR)
        strbuf_addf(&g->w.bytes, "%s/\n", f->path);
    else if (f->type == ENTRY_SYMLINK)
        strbuf_addf(&g->w.bytes, "%s -> %s\n", f->path, f->target);
    else
        strbuf_addf(&g->w.bytes, "%s  (%" PRIu64 " bytes)\n", f->path, f->size);
    jw_object_begin(&g->j);
    jw_string(jw_key(&g->j, "path"), f->path);
    jw_string(jw_key(&g->j, "type"), type_text(f->type));
    jw_u64(jw_key(&g->j, "size"), f->size);
    jw_i64(jw_key(&g->j, "modifiedMs"), f->mtime_ms);
    jw_object_end(&g->j);
}

static void answer(struct listing *g)
{
    struct result r;

    if (g->n == 0)
        strbuf_addstr(&g->w.bytes, "(empty)");
    if (g->more)
        strbuf_addf(&g->w.bytes, "(only the first %zu are shown)", g->n);
    jw_array_end(&g->j);
    jw_bool(jw_key(&g->j, "more"), g->more);
    jw_object_end(&g->j);
    result_begin(&r, g->w.c->x->version);
    result_text(&r, g->w.bytes.buf, g->w.bytes.len);
    result_end(&r, false, g->w.data.truncated ? NULL : g->w.data.buf, g->w.data.len);
    file_done(&g->w, &r);
}

static void on_event(struct call *c, uint8_t what, const void *p, size_t len)
{
    struct listing *g = listing_of(c->owner);
    struct file_entry entry;

    if (what != EVENT_ENTRY || !file_entry_read(p, len, &entry))
        return;
    if (g->n < ENTRIES_MAX && g->w.bytes.len < LIST_MAX / 4) {
        add_entry(g, &entry);
        g->n++;
        return;
    }
    g->more = true;
    answer(g);
}

static void on_end(struct call *c, int status, const char *message, const void *result UNUSED,
                   size_t len UNUSED)
{
    struct listing *g = listing_of(c->owner);

    if (status != 0)
        file_fail(&g->w, status, message);
    else
        answer(g);
}

static void ask_agent(struct file_work *w)
{
    AUTO(strbuf_done) struct strbuf request = file_request(w);

    wire_put_u32(&request, (uint32_t)listing_of(w)->depth);
    w->call = (struct call){.owner = w, .on_event = on_event, .on_end = on_end};
    file_call(w, OP_FILE_LIST, &request);
}

static void begin(struct mcp_call *c)
{
    struct listing *g = NEW(
        struct listing,
        .w = {.begin = ask_agent, .bytes = strbuf_upto(LIST_MAX), .data = strbuf_upto(LIST_MAX)},
        .depth = mcp_call_number(c, "depth", 1, DEPTH_MAX, 1));

    g->j.out = &g->w.data;
    jw_object_begin(&g->j);
    jw_array_begin(jw_key(&g->j, "entries"));
    file_begin(c, &g->w, HOME);
}

static const struct mcp_field fields[] = {
    {"path", "string", "A directory, absolute or relative to /home/user. Default: /home/user.",
     false, NULL},
    {"depth", "integer", "How many levels, 1 to 10. Default: 1.", false, NULL},
    MCP_CONVERSATION,
    MCP_PATH,
    {0},
};

const struct mcp_tool list_files_tool = {
    .name = "list_files",
    .title = "List files",
    .description = "Lists a directory in the sandbox of the path.",
    .fields = fields,
    .begin = begin,
    .reads_only = true,
    .repeatable = true,
};
