/* The exporter: a process that posts what this server tells others: traces to collectors, events to
 * webhooks.
 *
 * The front may not open sockets (front/main/confine.c), and must never wait for somebody else's
 * server. So the warden starts this process, which has no other work, and gives it and the front a
 * socket to each other (wire/worker.h). The exporter gets a body, posts it (libcurl), and reports
 * the outcome. It tries once. The sender decides when to try again, and keeps what is to be sent,
 * within bounds of its own.
 *
 *   front                                                    exporter
 *   exporter_post(url, body)   -- memfd over SEQPACKET -->   curl, EXPORTER_AT_ONCE at a time
 *   done(status or -errno)     <-- in any order ----------
 *
 * The exporter follows no redirect. It reads no more than 64 KiB of an answer, keeps nothing of it
 * but the status and Retry-After, and gives up after EXPORTER_TIMEOUT_MS. It checks certificates
 * against the system's. A target that a tenant has named is `judged`: what its name leads to is
 * looked at when it is connected, and must be an address of the internet; and it gets a connection
 * of its own, never one that another post has opened. If the exporter ends, the warden soon starts another: posts that the old one had are answered
 * -EPIPE, and posts that come meanwhile -EAGAIN. The exporter serves nobody, starts nothing and
 * writes no file (front/main/confine.c). */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/hidden.h"

#define EXPORTER_AT_ONCE    32  /* posts under way; further ones wait in the socket */
#define EXPORTER_POSTS_MAX  256 /* posts without an answer; beyond, exporter_post returns -EAGAIN */
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
    bool judged; /* refused with -EACCES if it is at an address inside */
    /* Called from the loop, exactly once, never before exporter_post returns. status: of HTTP, or
     * -errno; retry_after_ms: the time that the answer asked for, or 0. */
    void (*done)(void *arg, int status, uint64_t retry_after_ms);
    void *arg;
};

/* The front's side. */
struct exporter *exporter_new(uv_loop_t *loop);
/* Takes over a socket to an exporter, in place of the one before. */
void exporter_set_socket(struct exporter *h, int sock);
/* -EAGAIN: too many posts wait, or there is no exporter just now; -E2BIG; -EINVAL: the URL is not
 * of http or https. */
int exporter_post(struct exporter *h, const struct exporter_post *post);
