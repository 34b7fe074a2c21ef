/* Links to ports: see front/core/port_link.h. */
#include <stdio.h>
#include <string.h>

#include "front/core/port_link.h"
#include "front/core/reply.h"
#include "front/v1/check.h"
#include "front/v1/handlers.h"
#include "lib/base/clock.h"

#define LOCAL "localhost"

/* Names below localhost are this machine's, and a browser would not know the server's authority. */
static const char *scheme_of(const struct settings *s)
{
    bool local = strncmp(s->domain, LOCAL, strlen(LOCAL)) == 0;

    return local && !s->tls_cert[0] ? "http" : "https";
}

static void reply_link(struct e2b_req *q, const struct sandbox *b, unsigned port, int64_t end_s)
{
    const struct settings *s = &q->front->settings;
    bool public = b->spec.traffic_token[0] == '\0';
    char link[PORT_LINK_LEN + 1] = "", url[512], end[CLOCK_TEXT_LEN];
    struct reply r;
    struct json *j = reply_begin(&r, 4096);

    if (!public)
        port_link_make(b, port, end_s, link);
    snprintf(url, sizeof(url), "%s://%u-%s%s%s.%s", scheme_of(s), port, b->id, public ? "" : "-",
             link, s->domain);
    clock_text(end_s * 1000, end);
    jw_string(jw_key(j, "url"), url);
    if (public)
        jw_null(jw_key(j, "endAt"));
    else
        jw_string(jw_key(j, "endAt"), end);
    jw_bool(jw_key(j, "public"), public);
    reply_send(q, 201, &r);
}

void v1_link_post(struct http_req *req)
{
    struct e2b_req *q = e2b_of(req);

    check_body(q, "port", "seconds");
    if (!field_get(&q->in, "port"))
        field_wrong(&q->in, "'port' is required: the port that the link is to open");
    unsigned port = (unsigned)field_count(&q->in, "port", 1, 65535, 0);
    int64_t seconds =
        (int64_t)field_count(&q->in, "seconds", 1, PORT_LINK_MAX_S, PORT_LINK_USUAL_S);
    if (port == FRONT_ENVD_PORT || port == FRONT_INTERPRETER_PORT)
        field_wrong(&q->in, "'port' is %u, which takes the sandbox's own token and no link", port);
    struct sandbox *b = e2b_read(q) ? e2b_sandbox(q) : NULL;
    if (!b)
        return;
    if (!q->front->settings.domain[0])
        reply_error(req, 409,
                    "The server has no domain that links could be below: start it with --domain");
    else
        reply_link(q, b, port, clock_wall_ms() / 1000 + seconds);
}
