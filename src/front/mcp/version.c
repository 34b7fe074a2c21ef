#include "front/mcp/version.h"

#include <string.h>

#include "lib/text/base64.h"
#include "lib/text/json.h"

#define META_PREFIX "io.modelcontextprotocol/"
#define NAME_MAX_   1024 /* bytes of a header that repeats a name */

static const char *const texts[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                    "2026-07-28"};
_Static_assert(ARRAY_SIZE(texts) == MCP_VERSION_MAX_, "a text for each version");

const char *version_text(enum mcp_version v)
{
    return texts[v];
}

bool version_read(const char *text, enum mcp_version *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (strcmp(texts[i], text) == 0) {
            *ret = (enum mcp_version)i;
            return true;
        }
    return false;
}

enum mcp_version version_settle(const char *text)
{
    enum mcp_version v;

    return version_read(text, &v) && version_has_sessions(v) ? v : MCP_VERSION_SESSIONS;
}

void version_error_data(struct strbuf *out, const char *requested)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_array_begin(jw_key(&j, "supported"));
    for (size_t i = ARRAY_SIZE(texts); i > 0; i--)
        jw_string(&j, texts[i - 1]);
    jw_array_end(&j);
    jw_bytes(jw_key(&j, "requested"), requested, strnlen(requested, 64));
    jw_object_end(&j);
}

/* ---- headers that repeat the body ------------------------------------------------------------ */

/* Whether a header has this value. A value that is no plain text comes as =?base64?...?= */
static bool header_says(const char *header, const char *value)
{
    static const char head[] = "=?base64?", tail[] = "?=";
    size_t len = strlen(header), skip = sizeof(head) - 1, end = sizeof(tail) - 1;
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(NAME_MAX_);

    if (len < skip + end || strncmp(header, head, skip) != 0 ||
        strcmp(header + len - end, tail) != 0)
        return strcmp(header, value) == 0;
    return base64_decode(&text, header + skip, len - skip - end) == 0 && !text.truncated &&
           strlen(value) == text.len && memcmp(value, text.buf, text.len) == 0;
}

static int mismatch(struct sg_error *e, const char *header)
{
    err_invalid(e, "Header mismatch: %s is missing, or differs from the body", header);
    return MESSAGE_HEADER_MISMATCH;
}

int version_check_request(const struct http_req *req, const struct message *m, struct sg_error *e)
{
    const json_t *meta = json_object_get(m->params, "_meta"),
                 *version = json_object_get(meta, META_PREFIX "protocolVersion"),
                 *name = json_object_get(m->params, "name");
    const char *method = http_header_get(req, "mcp-method"),
               *named = http_header_get(req, "mcp-name");

    if (!json_is_string(version)) {
        err_invalid(e, "params._meta has no \"" META_PREFIX "protocolVersion\"");
        return MESSAGE_INVALID_PARAMS;
    }
    if (strcmp(json_string_value(version), http_header_get(req, "mcp-protocol-version")) != 0)
        return mismatch(e, "MCP-Protocol-Version");
    if (!json_is_object(json_object_get(meta, META_PREFIX "clientCapabilities"))) {
        err_invalid(e, "params._meta has no \"" META_PREFIX "clientCapabilities\"");
        return MESSAGE_INVALID_PARAMS;
    }
    if (!method || strcmp(method, m->method) != 0)
        return mismatch(e, "Mcp-Method");
    if (strcmp(m->method, "tools/call") == 0 && json_is_string(name) &&
        (!named || !header_says(named, json_string_value(name))))
        return mismatch(e, "Mcp-Name");
    return 0;
}
