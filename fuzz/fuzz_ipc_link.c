/* What the peer of a link does, as a list of steps, each with a byte that says which: it sends a
 * message (u8 length, u8 descriptors, bytes), answers the oldest call, reads one, hangs up and comes
 * anew; or the owner calls, sends, or its deadlines pass. Beyond memory errors this checks that
 * every call is answered once, and that no descriptor is left open. */
#include <assert.h>
#include <dirent.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/ipc/calls.h"

#define MAGIC 0x69706366u

struct owner {
    struct ipc_link link;
    unsigned called, answered;
};

static void changed(struct ipc_link *l)
{
    assert((ipc_link_events(l) == 0) == (l->sock < 0));
}

static int take(struct ipc_in *in)
{
    assert(in->len >= in->link->kind->min && in->len <= in->link->kind->max);
    assert(((char *)in->m)[in->len] == '\0' && in->fds.n <= in->fds.max);
    for (size_t i = 0; i < in->fds.n; i++)
        assert(in->fds.at[i] >= 0);
    return in->len % 5 == 4 ? -EPROTO : 0;
}

static int answer(const struct ipc_call *c, struct ipc_in *in)
{
    struct owner *o = CONTAINER_OF(in->link, struct owner, link);

    assert(c->arg == o && (in->r == 0) == (in->m != NULL) && (in->r == 0 || in->fds.n == 0));
    o->answered++;
    return 0;
}

static void gone(struct ipc_link *l, int r)
{
    assert((r == -EPIPE || r == -EPROTO) && l->sock >= 0);
}

static const struct ipc_kind kind = {
    .magic = MAGIC,
    .min = sizeof(struct ipc_head),
    .max = 64,
    .fds_max = 2,
    .unsent_max = 3,
    .read_below = 2,
    .turn = 4,
    .calls_max = 20,
    .wait_ns = 1,
    .take = take,
    .answer = answer,
    .gone = gone,
};

static size_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int connect_peer(struct owner *o)
{
    int pair[2], small = 1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    ipc_link_open(&o->link, pair[0]);
    return pair[1];
}

static size_t peer_sends(int peer, const uint8_t *data, size_t len)
{
    int fds[8] = {peer, peer, peer, peer, peer, peer, peer, peer};
    size_t n = len > 2 ? data[0] : 0;

    if (len <= 2)
        return len;
    n = n < len - 2 ? n : len - 2;
    ipc_send(peer, data + 2, n, fds, data[1] % ARRAY_SIZE(fds));
    return n + 2;
}

static void peer_answers(int peer, uint8_t seed)
{
    struct ipc_head m;

    if (ipc_recv(peer, &m, sizeof(m), NULL) == sizeof(m) && seed % 2)
        ipc_send(peer, &m, sizeof(m), &peer, seed % 3);
}

static void owner_says(struct owner *o, bool calls, int fd)
{
    struct ipc_head head = {.type = 1};
    struct ipc_out out = {.head = &head, .len = sizeof(head), .fds = &fd, .n_fds = 1};

    if (!calls)
        ipc_link_send(&o->link, &out);
    else if (ipc_link_call(&o->link, &out, NULL, o) == 0)
        o->called++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t before = open_fds();
    struct owner o = {.called = 0};
    int peer;

    ipc_link_init(&o.link, &kind, changed);
    peer = connect_peer(&o);
    while (len > 0) {
        uint8_t step = *data++;

        len--;
        if (step % 8 == 0) {
            size_t used = peer_sends(peer, data, len);
            data += used;
            len -= used;
        } else if (step % 8 == 1) {
            peer_answers(peer, step >> 3);
        } else if (step % 8 == 2) {
            close(peer);
            ipc_link_ready(&o.link);
            peer = connect_peer(&o);
        } else if (step % 8 == 3) {
            ipc_link_expire(&o.link);
        } else if (step % 8 < 6) {
            owner_says(&o, step % 2, peer);
        } else {
            ipc_link_ready(&o.link);
        }
        assert(o.called - o.answered == o.link.n_open);
    }
    ipc_link_close(&o.link);
    close(peer);
    assert(o.called == o.answered && open_fds() == before);
    free(o.link.buf);
    free(o.link.calls);
    return 0;
}
