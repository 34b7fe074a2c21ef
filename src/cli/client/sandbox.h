/* One sandbox: its address, how to speak to its daemon (port 49983) or to another of its ports, and
 * single calls to the daemon. */
#pragma once

#include "lib/text/strbuf.h"
#include "cli/client/client.h"

struct json_t;

struct sandbox {
    struct client *client;
    const char *id, *port;
    char *url;           /* base of all URLs */
    char *token;         /* NULL: none is needed */
    char *authorization; /* header with the user; NULL: the sandbox's default */
};

/* Makes a sandbox; *ret is the server's object, whose sandboxID is a plain name. */
struct payload_create;
int sandbox_create(struct client *c, struct payload_create *b, struct json_t **ret,
                   struct sg_error *e);
/* Asks the control plane about the sandbox, which has no effect on the sandbox. Refuses a paused
 * sandbox that does not wake up by itself. user may be NULL. */
int sandbox_open(struct sandbox *v, struct client *c, const char *id, const char *user,
                 struct sg_error *e);
/* The same for another port than the daemon's. */
int sandbox_open_port(struct sandbox *v, struct client *c, const char *id, const char *port,
                      struct sg_error *e);
void sandbox_close(struct sandbox *v);

/* Makes the headers of every request; content_type may be NULL. Free them with web_headers_done. */
struct curl_slist *sandbox_headers(const struct sandbox *v, const char *content_type);
/* Makes the URL of "/<what>". */
void sandbox_api_url(const struct sandbox *v, struct strbuf *url, const char *what);

/* Makes a unary call, such as "filesystem.Filesystem/Stat". ret may be NULL. */
int sandbox_call(struct sandbox *v, const char *method, const struct strbuf *body,
                 struct json_t **ret, struct sg_error *e);
/* Turns an error object {"code", "message"} of a call, or of a stream's end, into an error:
 * -ENOENT, -EEXIST, -ETIMEDOUT and so on. */
int sandbox_error(const struct json_t *error, struct sg_error *e);
/* sandbox_gone and sandbox_refusal turn an answer with another status than 200 into an error. */
struct web_reply;
/* For a 502: -ENXIO, with the way the sandbox ended if the server tells, else with `otherwise`. */
int sandbox_gone(const struct sandbox *v, const struct web_reply *reply, const char *otherwise,
                 struct sg_error *e);
int sandbox_refusal(const struct sandbox *v, const struct web_reply *reply, struct sg_error *e);
