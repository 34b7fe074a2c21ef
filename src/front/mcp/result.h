/* What a tool answers: content for a language model, and the same as data.
 *
 *   result_begin, result_text or its like as often as there is something, result_end */
#pragma once

#include "lib/text/json.h"
#include "front/mcp/version.h"

/* What tools say in the same words: the tool and why; where the sandbox is. */
#define RESULT_UNAVAILABLE "%s is unavailable now: %s"
#define RESULT_ELSEWHERE   "The sandbox of this path is on another server. Use %s/mcp"

struct result {
    struct strbuf out;
    struct json j;
    enum mcp_version version;
    unsigned resources; /* so far: they need names */
};

void result_begin(struct result *r, enum mcp_version version);
void result_text(struct result *r, const char *text, size_t len);
void result_textf(struct result *r, const char *fmt, ...) PRINTF(2, 3);
/* base64: as it is to be sent. */
void result_image(struct result *r, const char *type, const char *base64, size_t len);
/* A resource that comes with the answer. path: of the file that it is, or NULL. One of text and
 * base64 is NULL. */
void result_resource(struct result *r, const char *type, const char *path, const char *text,
                     const char *base64, size_t len);
/* structured: a JSON object, or NULL. */
void result_end(struct result *r, bool is_error, const char *structured, size_t len);
void result_done(struct result *r);

/* The part that every result has in versions without sessions, inside of its object. */
void result_common(struct json *j, enum mcp_version version);
/* {"name":"sandglass",...} */
void result_server_info(struct json *j);
