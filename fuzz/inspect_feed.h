/* An inspected connection without TLS, both of whose ends are played from one buffer each. */
#pragma once

#include <assert.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "guard/inspect_impl.h"
#include "lib/vault/vault.h"

#define FEED_SECRET "s3cr3t-value/+~"
#define FEED_TURNS  400

void record_decision(struct sandbox *s, const struct decision *d)
{
    assert(s && d->kind);
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    s->refs++;
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    s->refs--;
}

struct feed_end {
    int fd;
    const char *data; /* to be sent */
    size_t len, step;
    struct strbuf got;
};

static struct guard feed_guard;
static uv_loop_t feed_loop;
static struct policy *feed_policies[2]; /* off, enforce */

static struct policy *feed_policy(const char *mode)
{
    AUTO(strbuf_done) struct strbuf sealed = {0}, text = {0};
    uint8_t public[VAULT_PUBLIC_LEN];
    struct policy *p = NULL;

    strbuf_init(&sealed, VAULT_SEALED_MAX);
    strbuf_init(&text, 65536);
    vault_key_public(feed_guard.key, public);
    assert(vault_seal(public, "tenant00000000000000/k", FEED_SECRET, strlen(FEED_SECRET), &sealed,
                      NULL) == 0);
    strbuf_addf(&text,
                "{\"tenant\":\"tenant00000000000000\",\"sandbox\":\"sandbox0000000000000\","
                "\"default\":\"allow\",\"sanitise\":\"%s\",\"rules\":[{\"domain\":\"a.test\","
                "\"headers\":[[\"X-Key\",\"${e2b.secrets.k}\"]]}],\"secrets\":[{\"name\":\"k\","
                "\"sealed\":\"%s\",\"hosts\":[\"a.test\"],\"placeholder\":\"sgph_k\"}]}",
                mode, sealed.buf);
    assert(policy_parse(text.buf, text.len, feed_guard.key, &p, NULL) == 0);
    return p;
}

static void feed_start(void)
{
    if (feed_guard.loop)
        return;
    assert(uv_loop_init(&feed_loop) == 0);
    feed_guard = (struct guard){.loop = &feed_loop, .dir = -1, .key = vault_key_new()};
    feed_policies[0] = feed_policy("off");
    feed_policies[1] = feed_policy("enforce");
}

static void feed_on_done(void *arg, const struct inspect_done *d)
{
    (void)d;
    *(bool *)arg = true;
}

static void feed_turn(struct feed_end *e)
{
    char buf[65536];
    size_t n = e->len < e->step ? e->len : e->step;
    ssize_t sent = n > 0 ? send(e->fd, e->data, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0, got;

    if (sent > 0) {
        e->data += sent;
        e->len -= (size_t)sent;
        if (e->len == 0)
            shutdown(e->fd, SHUT_WR);
    }
    while ((got = recv(e->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
        strbuf_add(&e->got, buf, (size_t)got);
}

static int feed_pair(int *ret_other)
{
    int fds[2];

    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
    *ret_other = fds[1];
    return fds[0];
}

/* Plays both ends to their end; then whatever is left is reset. */
static void feed_run(struct feed_end *client, struct feed_end *server, bool enforce)
{
    struct sandbox sandbox = {.guard = &feed_guard, .id = "sandbox0000000000000", .refs = 1};
    bool done = false;
    int sandbox_fd, server_fd;
    struct inspect *i;

    feed_start();
    client->fd = feed_pair(&sandbox_fd);
    server->fd = feed_pair(&server_fd);
    i = inspect_new(&(struct inspect_order){.sandbox = &sandbox,
                                            .policy = feed_policies[enforce],
                                            .name = "a.test",
                                            .port = 80,
                                            .sandbox_fd = sandbox_fd,
                                            .server_fd = server_fd,
                                            .done = feed_on_done,
                                            .arg = &done});
    for (unsigned n = 0; n < FEED_TURNS && !done; n++) {
        if (n > 0 && client->len == 0 && server->len == 0 && n > FEED_TURNS / 8)
            break;
        feed_turn(client);
        feed_turn(server);
        uv_run(&feed_loop, UV_RUN_NOWAIT);
    }
    if (!done)
        inspect_reset(i);
    assert(done && sandbox.refs == 1);
    feed_turn(client);
    feed_turn(server);
    close(client->fd);
    close(server->fd);
    uv_run(&feed_loop, UV_RUN_DEFAULT);
}
