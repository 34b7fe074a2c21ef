/* The answer of a tool: content for a language model, and the same as data.
 *
 *   result_begin; result_text and the like, once for each piece of content; result_end */
#pragma once

#include "lib/text/json.h"
#include "front/mcp/version.h"

/* Texts that several tools use, with the tool and the reason; with the server's address. */
#define RESULT_UNAVAILABLE "%s is unavailable now: %s"
#define RESULT_ELSEWHERE   "The sandbox of this path is on another server. Use %s/mcp"

struct result {
    struct strbuf out;
    struct json j;
    enum mcp_version version;
    unsigned resources; /* number so far: resources need names */
};

void result_begin(struct result *r, enum mcp_version version);
void result_text(struct result *r, const char *text, size_t len);
void result_textf(struct result *r, const char *fmt, ...) PRINTF(2, 3);
/* `base64` is sent as it is. */
void result_image(struct result *r, const char *type, const char *base64, size_t len);
/* A resource inside the answer. `path` is that of its file, or NULL. One of text and base64 is
 * NULL. */
void result_resource(struct result *r, const char *type, const char *path, const char *text,
                     const char *base64, size_t len);
/* `structured` is a JSON object, or NULL. */
void result_end(struct result *r, bool is_error, const char *structured, size_t len);
void result_done(struct result *r);

/* Writes the members that every result has in versions without sessions, inside its object. */
void result_common(struct json *j, enum mcp_version version);
/* Writes {"name":"sandglass",...}. */
void result_server_info(struct json *j);
