/* One sandbox: where it is, how to speak to its daemon (port 49983) or to another port of it, and
 * single calls of the daemon. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

struct sandbox {
    struct client *client;
    const char *id, *port;
    char *url;           /* base */
    char *token;         /* NULL: none is needed */
    char *authorization; /* the user, NULL: the sandbox's default */
};

/* Asks the control plane about the sandbox, without any effect on it. A paused one that does not
 * wake up by itself is refused. user may be NULL. */
int sandbox_open(struct sandbox *v, struct client *c, const char *id, const char *user,
                 struct sg_error *e);
/* The same for another port than the daemon's. */
int sandbox_open_port(struct sandbox *v, struct client *c, const char *id, const char *port,
                      struct sg_error *e);
void sandbox_close(struct sandbox *v);

/* Headers of every request; content_type may be NULL. Freed with web_headers_done. */
struct curl_slist *sandbox_headers(const struct sandbox *v, const char *content_type);
/* The URL of "/<what>". */
void sandbox_api_url(const struct sandbox *v, struct strbuf *url, const char *what);

/* A unary call, such as "filesystem.Filesystem/Stat". ret may be NULL. */
int sandbox_call(struct sandbox *v, const char *method, const struct strbuf *body,
                 struct json_t **ret, struct sg_error *e);
/* What an error object {"code", "message"} of a call or of a stream's end means: -ENOENT,
 * -EEXIST, -ETIMEDOUT and so on. */
int sandbox_error(const struct json_t *error, struct sg_error *e);
/* What an answer with another status than 200 means. */
struct web_reply;
/* Of a 502: that it is not there, or how it ended if the server says so. */
int sandbox_gone(const struct sandbox *v, const struct web_reply *reply, const char *otherwise,
                 struct sg_error *e);
int sandbox_refusal(const struct sandbox *v, const struct web_reply *reply, struct sg_error *e);
