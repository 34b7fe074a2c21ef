/* One inspected connection, as its files share it. One request at a time: those that a client sends
 * ahead wait in its side's buffer, and then in its socket.
 *
 *   inspect.c           the loop, deadlines, the end
 *   inspect_request.c   from the sandbox to the server      inspect_response.c   and back
 *
 *          request's head            its end              answer's head       its end
 *   up:    NONE -----------> BODY -----------> SENT
 *   down:  NONE -----------> HEAD ----------------------------> BODY ----------> NONE, both
 *
 * OPEN until it ends; TUNNEL after a WebSocket's handshake; LINGER while the sandbox takes the last
 * bytes: closing at once could take them away from it. */
#pragma once

#include "guard/http_body.h"
#include "guard/inspect.h"
#include "guard/inspect_rules.h"
#include "guard/inspect_sanitise.h"
#include "guard/inspect_tls.h"
#include "lib/http/work.h"

#define INSPECT_HANDSHAKE_MS  30000
#define INSPECT_FIRST_BYTE_MS 300000 /* from the end of a request to the answer's first byte */
#define INSPECT_IDLE_MS       600000
#define INSPECT_LINGER_MS     2000
#define INSPECT_QUIET_MS      200 /* then a few bytes that only look like a secret's go out */
#define INSPECT_INTERIM_MAX   16  /* answers 1xx to one request */
#define INSPECT_PIECE         (16u * 1024) /* of a body, at a time */
#define INSPECT_WHY           512

enum inspect_state { INSPECT_OPEN, INSPECT_TUNNEL, INSPECT_LINGER };
enum upload_state { UPLOAD_NONE, UPLOAD_BODY, UPLOAD_SENT };
enum download_state { DOWNLOAD_NONE, DOWNLOAD_HEAD, DOWNLOAD_BODY };

/* A request on its way. */
struct inspect_upload {
    enum upload_state state;
    struct http_scan scan;
    struct body_reader body;
    struct cleaner cleaner;
    bool chunked;  /* as it is written */
    bool deferred; /* its length is not known: it is held, and its head too */
    struct strbuf head, held;
};

/* Its answer. */
struct inspect_download {
    enum download_state state;
    struct http_scan scan;
    struct body_reader body;
    struct inflater *inflater;
    struct scrub_stream scrub;
    bool scrubbed;
    bool begun; /* its head was written */
    enum http_framing written;
    unsigned interim;
};

struct inspect {
    struct guard *guard;
    struct sandbox *sandbox;
    struct policy *policy;
    char name[POLICY_NAME_MAX + 1];
    uint16_t port;
    bool tls;
    void (*done)(void *arg, const struct inspect_done *d);
    void (*count)(void *arg, uint64_t up, uint64_t down);
    void *arg;

    struct side client, server;
    uv_poll_t *sandbox_watch, *server_watch;
    int sandbox_events, server_events; /* watched for now */
    uv_timer_t *timer;
    struct work work;                                  /* a few steps: see inspect.c */
    uint64_t told_up, told_down;                       /* to count */
    uint64_t began_ms, moved_ms, server_ms, linger_ms; /* when; server: its bytes */
    uint64_t first_byte_ms;                            /* how long one waits for it */

    enum inspect_state state;
    bool busy;   /* inside a turn */
    bool over;   /* to be ended after it */
    bool shut;   /* LINGER: the sandbox knows that no more comes */
    bool abrupt; /* what was sent is not whole */
    const char *error;

    /* The request at hand, and those before. */
    struct rules rules;
    uint64_t requests, request_ms;
    bool to_head, http10, close, upgrade;
    struct inspect_upload up;
    struct inspect_download down;
};

/* inspect.c. status: the sandbox gets an answer of ours with that text, if it has none yet, and the
 * connection ends. */
void inspect_refuse(struct inspect *i, int status, const char *text);
/* What was passed on cannot be completed. */
void inspect_abort(struct inspect *i, const char *why);
/* All was said. */
void inspect_finish(struct inspect *i);
void inspect_record(struct inspect *i, bool allowed, const char *rule, const char *detail);

/* Each does one thing that can be done now; false: there is none. */
bool inspect_request_step(struct inspect *i);
bool inspect_response_step(struct inspect *i);
bool inspect_tunnel_step(struct inspect *i);
/* Both halves are done: what they held is freed. */
void inspect_upload_done(struct inspect *i);
void inspect_download_done(struct inspect *i);
/* A few held bytes go out. */
void inspect_download_flush(struct inspect *i);
