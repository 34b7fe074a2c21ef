#include "front/forward/refusal.h"

#include <string.h>
#include <strings.h>

#include "lib/text/json.h"
#include "front/core/request_log.h"
#include "front/core/reply.h"

#define ANSWER_MAX 4096

bool wants_page(const struct http_req *req)
{
    const char *accept = http_header_get(req, "accept");
    const char *mode = http_header_get(req, "sec-fetch-mode");
    const char *agent = http_header_get(req, "user-agent");

    if (!accept || !strcasestr(accept, "text/html"))
        return false;
    if (mode)
        return strcasecmp(mode, "navigate") == 0;
    return agent && strcasestr(agent, "mozilla") && !http_header_get(req, "x-requested-with");
}

/* The page needs no escapes: nothing in it comes from the request, ids are [a-z0-9], and messages
 * are ours. */
static void write_page(struct strbuf *out, const struct sandbox *b, int status, unsigned port,
                       const char *message)
{
    strbuf_addf(out,
                "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%d %s</title>\n"
                "<body style=\"font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em "
                "auto;padding:0 1em\">\n<h1 style=\"font-size:1.3em\">%s</h1>\n<p>Sandbox "
                "<code>%s</code>",
                status, http_status_text(status), message, b->id);
    if (port)
        strbuf_addf(out, ", port <code>%u</code>", port);
    strbuf_addstr(out, "</p>\n</body></html>\n");
}

static void write_json(struct strbuf *out, struct http_req *req, const struct sandbox *b,
                       int status, unsigned port, const char *message)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "sandboxId"), b->id);
    jw_string(jw_key(&j, "message"), message);
    if (port)
        jw_u64(jw_key(&j, "port"), port);
    jw_i64(jw_key(&j, "code"), status);
    reply_put_fault(req, &j, status, message);
    jw_object_end(&j);
}

void refuse_forward(struct http_req *req, const struct sandbox *b, int status, unsigned port,
                    const char *message)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(ANSWER_MAX);

    http_failed(req, status, message);
    /* Whether and how a server listens there is up to the sandbox's user. */
    if (status == 502 || status == 504)
        request_log_blame(req, FAULT_CODE);
    if (wants_page(req)) {
        write_page(&out, b, status, port, message);
        http_reply(req, status, "text/html; charset=utf-8", out.buf, out.len);
    } else {
        write_json(&out, req, b, status, port, message);
        http_reply(req, status, "application/json", out.buf, out.len);
    }
}
