/* write_file: a file appears whole or not at all. */
#include <string.h>

#include "lib/text/base64.h"
#include "lib/channel/wire.h"
#include "front/mcp/catalogue.h"
#include "front/mcp/files.h"

#define WRITE_MAX (8u * 1024 * 1024) /* no message is larger */
#define FILE_MODE 0644

struct writing {
    struct file_work w;
    struct strbuf bytes;
};

static const char *const known[] = {"conversationId", "pathId",   "path",
                                    "content",        "encoding", NULL};

static struct writing *writing_of(struct file_work *w)
{
    return CONTAINER_OF(w, struct writing, w);
}

static void drop(struct file_work *w)
{
    strbuf_done(&writing_of(w)->bytes);
}

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct writing *g = writing_of(c->owner);
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(16 * OPS_PATH_MAX);
    struct file_entry entry;
    struct result r;
    struct json j = {.out = &data};

    if (status != 0 || !file_entry_read(result, len, &entry)) {
        file_fail(&g->w, status ? status : EPROTO, message);
        return;
    }
    result_begin(&r, g->w.c->x->version);
    result_textf(&r, "%zu bytes were written to %.512s", g->bytes.len, entry.path);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "path"), entry.path, strlen(entry.path));
    jw_u64(jw_key(&j, "size"), g->bytes.len);
    jw_object_end(&j);
    result_end(&r, false, data.buf, data.len);
    file_done(&g->w, &r);
}

static void ask_agent(struct file_work *w)
{
    struct writing *g = writing_of(w);
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&request, FILE_USER);
    wire_put_str(&request, w->path);
    wire_put_u32(&request, FILE_MODE);
    wire_put_u32(&request, FILE_PARENTS);
    wire_put_u32(&request, 0); /* metadata */
    w->call = (struct call){.owner = w, .on_end = on_end};
    if (file_call(w, OP_FILE_WRITE, &request))
        call_pour(&w->call, g->bytes.buf, g->bytes.len);
}

/* The argument `content`, as bytes. */
static void read_content(struct fields *in, struct strbuf *out)
{
    const char *content = field_text(in, "content", WRITE_MAX, NULL);
    const char *encoding = field_text(in, "encoding", 16, "utf-8");

    if (!content)
        fields_invalid(in, "content is missing");
    else if (strcmp(encoding, "utf-8") == 0)
        strbuf_addstr(out, content);
    else if (strcmp(encoding, "base64") != 0)
        fields_invalid(in, "encoding must be utf-8 or base64");
    else if (base64_decode(out, content, strlen(content)) < 0)
        fields_invalid(in, "content is not base64");
}

static void begin(struct mcp_call *c)
{
    struct writing *g = xcalloc(1, sizeof(*g));

    g->w = (struct file_work){.begin = ask_agent, .drop = drop};
    strbuf_init(&g->bytes, WRITE_MAX);
    read_content(&c->in, &g->bytes);
    file_begin(c, &g->w, known, NULL);
}

static json_t *schema(void)
{
    static const char *const required[] = {"path", "content", NULL};
    json_t *p = json_object(),
           *encoding = schema_field("string", "How content is written. Default: utf-8.");

    json_object_set_new(encoding, "enum", json_pack("[ss]", "utf-8", "base64"));
    json_object_set_new(p, "path", schema_field("string", "Absolute, or relative to /home/user."));
    json_object_set_new(p, "content", schema_field("string", "All of the file."));
    json_object_set_new(p, "encoding", encoding);
    schema_add_place(p);
    return schema_object(p, required);
}

const struct mcp_tool write_file_tool = {
    .name = "write_file",
    .title = "Write a file",
    .description =
        "Writes a file in the sandbox of the path, in place of one that is there. Missing "
        "directories are made.",
    .schema = schema,
    .begin = begin,
    .destroys = true,
    .repeatable = true,
};
