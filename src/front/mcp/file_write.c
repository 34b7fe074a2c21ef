/* write_file: a file appears whole or not at all. */
#include <string.h>

#include "lib/text/base64.h"
#include "front/mcp/catalogue.h"
#include "front/mcp/files.h"

#define WRITE_MAX (8u * 1024 * 1024) /* no message is larger */

static void on_end(struct call *c, int status, const char *message, const void *result, size_t len)
{
    struct file_work *w = c->owner;
    AUTO(strbuf_done) struct strbuf data = strbuf_upto(16 * OPS_PATH_MAX);
    struct file_entry entry;
    struct result r;
    struct json j = {.out = &data};

    if (status != 0 || !file_entry_read(result, len, &entry)) {
        file_fail(w, status ? status : EPROTO, message);
        return;
    }
    result_begin(&r, w->c->x->version);
    result_textf(&r, "%zu bytes were written to %.512s", w->bytes.len, entry.path);
    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "path"), entry.path, strlen(entry.path));
    jw_u64(jw_key(&j, "size"), w->bytes.len);
    jw_object_end(&j);
    result_end(&r, false, data.buf, data.len);
    file_done(w, &r);
}

static void ask_agent(struct file_work *w)
{
    struct sg_error e = {0};

    w->call = (struct call){.owner = w, .on_end = on_end};
    int r = call_write_file(&w->call, w->sandbox, FILE_USER, w->path, 0644, w->bytes.buf,
                            w->bytes.len, &e);
    file_begun(w, r, &e);
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
    struct file_work *w =
        NEW(struct file_work, .begin = ask_agent, .bytes = strbuf_upto(WRITE_MAX));

    read_content(&c->in, &w->bytes);
    file_begin(c, w, NULL);
}

static const struct mcp_field fields[] = {
    {"path", "string", "Absolute, or relative to /home/user.", true, NULL},
    {"content", "string", "All of the file.", true, NULL},
    {"encoding", "string", "How content is written. Default: utf-8.", false,
     "[\"utf-8\",\"base64\"]"},
    MCP_CONVERSATION,
    MCP_PATH,
    {0},
};

const struct mcp_tool write_file_tool = {
    .name = "write_file",
    .title = "Write a file",
    .description =
        "Writes a file in the sandbox of the path, in place of one that is there. Missing "
        "directories are made.",
    .fields = fields,
    .begin = begin,
    .destroys = true,
    .repeatable = true,
};
