/* One inspected connection, as its files share it. It handles one request at a time: requests that
 * a client sends ahead wait in the client side's buffer, and then in its socket.
 *
 *   inspect.c           the loop, deadlines, the end
 *   inspect_request.c   from the sandbox to the server
 *   inspect_response.c  from the server to the sandbox
 *
 *          request's head      request's end          response's head      response's end
 *   up:    NONE ------> BODY ------------> SENT ----------------------------------------> NONE
 *   down:  NONE ------> HEAD ---------------------------------------> BODY -------------> NONE
 *
 * The connection is OPEN until it ends; TUNNEL after a WebSocket's handshake; LINGER while the
 * sandbox takes the last bytes, since closing at once could take them away from it. */
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
#define INSPECT_QUIET_MS      200 /* then a few held bytes that only look like a secret go out */
#define INSPECT_INTERIM_MAX   16  /* 1xx responses to one request */
#define INSPECT_PIECE         (16u * 1024) /* bytes of a body that are handled at a time */
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
    bool chunked;  /* the guard writes the body in chunks */
    bool deferred; /* the body's length is not known yet: body and head are held */
    struct strbuf head, held;
};

/* The response to it. */
struct inspect_download {
    enum download_state state;
    struct http_scan scan;
    struct body_reader body;
    struct inflater *inflater;
    struct scrub_stream scrub;
    bool scrubbed;
    bool begun; /* the head has been written */
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
    int sandbox_events, server_events; /* the events watched for now */
    uv_timer_t *timer;
    struct work work;                                  /* a few steps at a time: inspect.c */
    uint64_t told_up, told_down;                       /* bytes that `count` was told */
    uint64_t began_ms, moved_ms, server_ms, linger_ms; /* server_ms: when its last bytes passed */
    uint64_t first_byte_ms;                            /* how long the guard waits for a response */

    enum inspect_state state;
    bool busy;   /* inspect.c is in the middle of a turn */
    bool over;   /* the connection ends after the turn */
    bool shut;   /* LINGER: the sandbox was told that no more comes */
    bool abrupt; /* the sandbox may have got less than all of it */
    const char *error;

    /* The current request, and how many there were. */
    struct rules rules;
    uint64_t requests, request_ms;
    bool to_head, http10, close, upgrade;
    struct inspect_upload up;
    struct inspect_download down;
};

/* inspect.c. The sandbox gets a response of ours with that status and text, if it has none yet, and
 * the connection ends. */
void inspect_refuse(struct inspect *i, int status, const char *text);
/* Ends the connection because a message that was passed on in part cannot be completed. */
void inspect_abort(struct inspect *i, const char *why);
/* Ends the connection after all was sent. */
void inspect_finish(struct inspect *i);
void inspect_record(struct inspect *i, bool allowed, const char *rule, const char *detail);

/* Each does one step that can be done now; false: there is none. */
bool inspect_request_step(struct inspect *i);
bool inspect_response_step(struct inspect *i);
bool inspect_tunnel_step(struct inspect *i);
/* Free everything that a finished request or response held. */
void inspect_upload_done(struct inspect *i);
void inspect_download_done(struct inspect *i);
/* Sends the few bytes that were held back because they look like the beginning of a secret. */
void inspect_download_flush(struct inspect *i);
