#include "front/mcp/result.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 1024

void result_server_info(struct json *j)
{
    jw_object_begin(j);
    jw_string(jw_key(j, "name"), "sandglass");
    jw_string(jw_key(j, "title"), "Sandglass");
    jw_string(jw_key(j, "version"), SG_VERSION);
    jw_object_end(j);
}

void result_common(struct json *j, enum mcp_version version)
{
    if (version_has_sessions(version))
        return;
    jw_string(jw_key(j, "resultType"), "complete");
    jw_object_begin(jw_key(j, "_meta"));
    jw_key(j, "io.modelcontextprotocol/serverInfo");
    result_server_info(j);
    jw_object_end(j);
}

void result_begin(struct result *r, enum mcp_version version)
{
    *r = (struct result){.version = version};
    strbuf_init(&r->out, MESSAGE_MAX);
    jw_init(&r->j, &r->out);
    jw_object_begin(&r->j);
    jw_array_begin(jw_key(&r->j, "content"));
}

static void begin_item(struct result *r, const char *type)
{
    jw_object_begin(&r->j);
    jw_string(jw_key(&r->j, "type"), type);
}

void result_text(struct result *r, const char *text, size_t len)
{
    begin_item(r, "text");
    jw_bytes(jw_key(&r->j, "text"), text, len);
    jw_object_end(&r->j);
}

void result_textf(struct result *r, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    result_text(r, text, strlen(text));
}

void result_image(struct result *r, const char *type, const char *base64, size_t len)
{
    begin_item(r, "image");
    jw_bytes(jw_key(&r->j, "data"), base64, len);
    jw_string(jw_key(&r->j, "mimeType"), type);
    jw_object_end(&r->j);
}

/* Writes a path as a file: URI. A path may contain any bytes, a URI may not. */
static void put_file_uri(struct result *r, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    AUTO(strbuf_done) struct strbuf uri = strbuf_upto(3 * strlen(path) + 16);

    strbuf_addstr(&uri, path[0] == '/' ? "file://" : "file:///home/user/");
    for (; *path; path++)
        if (strchr(plain, *path))
            strbuf_addch(&uri, *path);
        else
            strbuf_addf(&uri, "%%%02X", (unsigned char)*path);
    jw_bytes(&r->j, uri.buf, uri.len);
}

void result_resource(struct result *r, const char *type, const char *path, const char *text,
                     const char *base64, size_t len)
{
    char name[48];

    begin_item(r, "resource");
    jw_object_begin(jw_key(&r->j, "resource"));
    jw_key(&r->j, "uri");
    snprintf(name, sizeof(name), "sandglass://result/%u", ++r->resources);
    if (path)
        put_file_uri(r, path);
    else
        jw_string(&r->j, name);
    jw_string(jw_key(&r->j, "mimeType"), type);
    jw_bytes(jw_key(&r->j, text ? "text" : "blob"), text ? text : base64, len);
    jw_object_end(&r->j);
    jw_object_end(&r->j);
}

void result_end(struct result *r, bool is_error, const char *structured, size_t len)
{
    jw_array_end(&r->j);
    if (structured)
        jw_raw(jw_key(&r->j, "structuredContent"), structured, len);
    jw_bool(jw_key(&r->j, "isError"), is_error);
    result_common(&r->j, r->version);
    jw_object_end(&r->j);
}

void result_done(struct result *r)
{
    strbuf_done(&r->out);
}
