/* The exporter: a process that carries what this server tells others: traces to collectors, events
 * to webhooks.
 *
 * The front may not open sockets (front/main/confine.c), and must never wait for somebody else's
 * server. So the warden starts this process, which has no other work, and gives both a socket to
 * each other (wire/worker.h): it gets a body, posts it (libcurl), and says what came of it. It
 * tries once; when to try again is the sender's to decide, who also keeps what is to be sent,
 * within its own bounds.
 *
 *   front: exporter_post(url, body) -- memfd over SEQPACKET --> exporter: curl, EXPORTER_AT_ONCE at
 * once done(status or -errno) <------------------------- in any order
 *
 * It follows no redirect, reads no more than 64 KiB of an answer, of which it keeps nothing but the
 * status and Retry-After, and gives up after EXPORTER_TIMEOUT_MS. Certificates are checked against
 * the system's. Addresses come from the operator's settings alone, never from a tenant. If it ends
 * there is another soon: what it had is answered -EPIPE, what comes meanwhile -EAGAIN. It serves
 * nobody, starts nothing and writes no file (front/main/confine.c). */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/hidden.h"

#define EXPORTER_AT_ONCE 8 /* posts under way; more wait in its socket */
#define EXPORTER_POSTS_MAX \
    256 /* handed over and not answered; beyond, exporter_post says -EAGAIN */
#define EXPORTER_BODY_MAX   (4u * 1024 * 1024)
#define EXPORTER_TIMEOUT_MS 10000
#define EXPORTER_HEADERS    8

struct exporter;

struct exporter_header {
    const char *name;
    const struct hidden *value;
};

struct exporter_post {
    const char *url;
    const char *content_type;
    struct exporter_header headers[EXPORTER_HEADERS]; /* ends at a NULL name */
    const void *body;                                 /* copied */
    size_t len;
    /* From the loop, exactly once, never before exporter_post returns. status: of HTTP, or -errno;
     * retry_after_ms: what the answer asked for, or 0. */
    void (*done)(void *arg, int status, uint64_t retry_after_ms);
    void *arg;
};

/* The front's side. */
struct exporter *exporter_new(uv_loop_t *loop);
/* A socket to an exporter, taken over; the one before is over. */
void exporter_set_socket(struct exporter *h, int sock);
/* -EAGAIN: too much waits for it, or it is not there just now; -E2BIG; -EINVAL: no URL of http or
 * https. */
int exporter_post(struct exporter *h, const struct exporter_post *post);
