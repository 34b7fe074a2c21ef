#include "front/mcp/result.h"

#include <stdio.h>
#include <string.h>

#define TEXT_MAX 1024

void result_server_info(struct json *j)
{
    jw_object_begin(j);
    jw_key(j, "name");
    jw_string(j, "sandglass");
    jw_key(j, "title");
    jw_string(j, "Sandglass");
    jw_key(j, "version");
    jw_string(j, SG_VERSION);
    jw_object_end(j);
}

void result_common(struct json *j, enum mcp_version version)
{
    if (version_has_sessions(version))
        return;
    jw_key(j, "resultType");
    jw_string(j, "complete");
    jw_key(j, "_meta");
    jw_object_begin(j);
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
    jw_key(&r->j, "content");
    jw_array_begin(&r->j);
}

static void begin_item(struct result *r, const char *type)
{
    jw_object_begin(&r->j);
    jw_key(&r->j, "type");
    jw_string(&r->j, type);
}

void result_text(struct result *r, const char *text, size_t len)
{
    begin_item(r, "text");
    jw_key(&r->j, "text");
    jw_bytes(&r->j, text, len);
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
    jw_key(&r->j, "data");
    jw_bytes(&r->j, base64, len);
    jw_key(&r->j, "mimeType");
    jw_string(&r->j, type);
    jw_object_end(&r->j);
}

/* Writes a path as a file: URI. A path may contain any bytes, a URI may not. */
static void put_file_uri(struct result *r, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    AUTO(strbuf_done) struct strbuf uri = {0};

    strbuf_init(&uri, 3 * strlen(path) + 16);
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
    jw_key(&r->j, "resource");
    jw_object_begin(&r->j);
    jw_key(&r->j, "uri");
    snprintf(name, sizeof(name), "sandglass://result/%u", ++r->resources);
    if (path)
        put_file_uri(r, path);
    else
        jw_string(&r->j, name);
    jw_key(&r->j, "mimeType");
    jw_string(&r->j, type);
    jw_key(&r->j, text ? "text" : "blob");
    jw_bytes(&r->j, text ? text : base64, len);
    jw_object_end(&r->j);
    jw_object_end(&r->j);
}

void result_end(struct result *r, bool is_error, const char *structured, size_t len)
{
    jw_array_end(&r->j);
    if (structured) {
        jw_key(&r->j, "structuredContent");
        jw_raw(&r->j, structured, len);
    }
    jw_key(&r->j, "isError");
    jw_bool(&r->j, is_error);
    result_common(&r->j, r->version);
    jw_object_end(&r->j);
}

void result_done(struct result *r)
{
    strbuf_done(&r->out);
}
