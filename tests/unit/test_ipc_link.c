#include "lib/ipc/calls.h"

#include <poll.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "tap.h"

enum { MAGIC = 0x69706374, TYPE = 3, UNSENT = 4, CALLS = 40 };

struct message {
    struct ipc_head head;
    char text[16];
};

/* What the owner of a link hears. */
struct bed {
    struct ipc_link link;
    int peer;
    unsigned changes, taken, answers, gone;
    int r, fd;
    bool refuse, again;
    char text[16];
};

static struct bed *bed_of(struct ipc_link *l)
{
    return CONTAINER_OF(l, struct bed, link);
}

static void changed(struct ipc_link *l)
{
    bed_of(l)->changes++;
}

static int take(struct ipc_in *in)
{
    struct bed *b = bed_of(in->link);

    b->taken++;
    snprintf(b->text, sizeof(b->text), "%.*s", (int)(in->len - sizeof(struct ipc_head)),
             ((struct message *)in->m)->text);
    b->fd = in->fds.n == 1 ? steal_fd(&in->fds.at[0]) : -1;
    return b->refuse ? -EPROTO : 0;
}

static int call(struct bed *b, void *arg);

static int answer(const struct ipc_call *c, struct ipc_in *in)
{
    struct bed *b = bed_of(in->link);

    b->answers++;
    b->r = in->r;
    EXPECT((in->r == 0) == (in->m != NULL));
    if (c->arg)
        ++*(int *)c->arg;
    if (b->again)
        EXPECT(call(b, NULL) == (in->link->sock < 0 ? -EPIPE : 0));
    return 0;
}

static void gone(struct ipc_link *l, int r)
{
    struct bed *b = bed_of(l);

    b->gone++;
    b->r = r;
}

static struct ipc_kind kind = {
    .magic = MAGIC,
    .min = sizeof(struct ipc_head),
    .max = sizeof(struct message),
    .fds_max = 1,
    .unsent_max = UNSENT,
    .read_below = 2,
    .turn = 3,
    .calls_max = CALLS,
    .take = take,
    .answer = answer,
    .gone = gone,
};

static void bed_open(struct bed *b)
{
    int pair[2];

    *b = (struct bed){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    ipc_link_init(&b->link, &kind, changed);
    ipc_link_open(&b->link, pair[0]);
    b->peer = pair[1];
    fd_set_nonblock(b->peer, true);
}

static void bed_close(struct bed *b)
{
    ipc_link_close(&b->link);
    close_p(&b->peer);
    free(b->link.buf);
    free(b->link.calls);
}

static int call(struct bed *b, void *arg)
{
    struct message m = {.head.type = TYPE};

    return ipc_link_call(&b->link, &(struct ipc_out){.head = &m, .len = sizeof(m)}, NULL, arg);
}

static int say(struct bed *b, const char *text, const int *fds, size_t n_fds)
{
    struct ipc_head head = {.type = TYPE};

    return ipc_link_send(&b->link, &(struct ipc_out){.head = &head,
                                                     .len = sizeof(head),
                                                     .more = text,
                                                     .more_len = strlen(text),
                                                     .fds = fds,
                                                     .n_fds = n_fds});
}

/* Says things until the socket is full. Returns how many went out. */
static unsigned fill(struct bed *b)
{
    unsigned n = 0;

    while (b->link.n_unsent == 0 && n < 100000 && say(b, "fill", NULL, 0) == 0)
        n++;
    return n - 1;
}

static bool hear(struct bed *b, struct message *ret, struct ipc_fds *fds)
{
    *ret = (struct message){.head = {.magic = 0}};
    return ipc_recv(b->peer, ret, sizeof(*ret), fds) > 0;
}

static void reply(struct bed *b, uint64_t seq)
{
    struct message m = {.head = {.magic = MAGIC, .seq = seq}, .text = "reply"};

    EXPECT(ipc_send(b->peer, &m, sizeof(m), NULL, 0) == 0);
}

TEST(messages_go_out_and_come_in)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};
    struct ipc_fds fds = {.max = 1};
    struct message m = {.head = {.magic = MAGIC}};

    bed_open(&b);
    EXPECT(ipc_link_events(&b.link) == POLLIN && ipc_link_due(&b.link) == UINT64_MAX);
    EXPECT(say(&b, "hello", &b.peer, 1) == 0 && b.link.n_unsent == 0);
    EXPECT(hear(&b, &m, &fds) && m.head.magic == MAGIC && m.head.type == TYPE && m.head.seq == 0);
    EXPECT(fds.n == 1);
    ipc_fds_close(&fds);
    EXPECT_STR(m.text, "hello");

    EXPECT(ipc_send(b.peer, &m, sizeof(m.head) + 2, &b.peer, 1) == 0);
    ipc_link_ready(&b.link);
    EXPECT(b.taken == 1 && b.fd >= 0 && b.gone == 0);
    EXPECT_STR(b.text, "he");
    close_p(&b.fd);
}

TEST(what_has_no_room_waits_in_order_with_its_descriptors)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};
    struct ipc_fds fds = {.max = 1};
    struct message m;
    int p[2];

    bed_open(&b);
    EXPECT(pipe(p) == 0);
    unsigned n = fill(&b);
    EXPECT(ipc_link_events(&b.link) == (POLLIN | POLLOUT));
    EXPECT(say(&b, "second", &p[1], 1) == 0);
    close(p[1]);                                 /* the link has a copy */
    EXPECT(ipc_link_events(&b.link) == POLLOUT); /* read_below */
    reply(&b, 0);
    ipc_link_ready(&b.link);
    EXPECT(b.taken == 0);
    EXPECT(say(&b, "third", NULL, 0) == 0 && say(&b, "fourth", NULL, 0) == 0);
    EXPECT(say(&b, "fifth", NULL, 0) == -EAGAIN);

    for (unsigned i = 0; i < n; i++)
        EXPECT(hear(&b, &m, NULL));
    unsigned changes = b.changes;
    ipc_link_ready(&b.link);
    EXPECT(b.changes > changes && b.link.n_unsent == 0 && ipc_link_events(&b.link) == POLLIN);
    EXPECT(b.taken == 1);
    EXPECT(hear(&b, &m, NULL) && strcmp(m.text, "fill") == 0);
    EXPECT(hear(&b, &m, &fds) && strcmp(m.text, "second") == 0 && fds.n == 1);
    EXPECT(hear(&b, &m, NULL) && strcmp(m.text, "third") == 0);
    EXPECT(hear(&b, &m, NULL) && strcmp(m.text, "fourth") == 0);
    EXPECT(write(fds.at[0], "x", 1) == 1);
    ipc_fds_close(&fds);
    char c;
    EXPECT(read(p[0], &c, 1) == 1 && read(p[0], &c, 1) == 0); /* nobody has a copy left */
    close(p[0]);
}

TEST(calls_are_answered_in_any_order_and_once)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};
    uint64_t seq[CALLS];
    int told[CALLS] = {0};
    struct message m;

    bed_open(&b);
    for (int i = 0; i < CALLS; i++) {
        EXPECT(call(&b, &told[i]) == 0);
        EXPECT(hear(&b, &m, NULL) && m.head.seq != 0);
        seq[i] = m.head.seq;
    }
    EXPECT(call(&b, NULL) == -EAGAIN);
    for (int i = CALLS - 1; i >= 0; i--) {
        reply(&b, seq[i]);
        reply(&b, seq[i]); /* the second is nobody's */
        ipc_link_ready(&b.link);
        EXPECT(told[i] == 1 && b.taken == (unsigned)(CALLS - i));
    }
    EXPECT(b.answers == CALLS && b.link.n_open == 0);
    EXPECT(call(&b, NULL) == 0 && hear(&b, &m, NULL));
    for (int i = 0; i < CALLS; i++)
        EXPECT(m.head.seq != seq[i]);
}

TEST(a_turn_is_bounded)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};

    bed_open(&b);
    for (int i = 0; i < 5; i++)
        reply(&b, 0);
    ipc_link_ready(&b.link);
    EXPECT(b.taken == 3);
    ipc_link_ready(&b.link);
    EXPECT(b.taken == 5);
}

TEST(a_peer_that_ends_answers_every_call)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};

    bed_open(&b);
    b.again = true; /* each callback calls anew, in vain */
    for (int i = 0; i < CALLS; i++)
        call(&b, NULL);
    reply(&b, 0);
    close(steal_fd(&b.peer));
    ipc_link_ready(&b.link);
    EXPECT(b.taken == 1); /* its last message */
    EXPECT(b.gone == 1 && b.answers == CALLS && b.r == -EPIPE);
    EXPECT(b.link.sock == -1 && b.link.n_open == 0 && ipc_link_events(&b.link) == 0);
    EXPECT(say(&b, "x", NULL, 0) == -EPIPE && call(&b, NULL) == -EPIPE);
    ipc_link_ready(&b.link);
    EXPECT(b.gone == 1);
}

TEST(a_peer_that_sends_nonsense_is_gone)
{
    static const struct {
        uint32_t magic;
        size_t len;
    } bad[] = {{MAGIC + 1, sizeof(struct message)},
               {MAGIC, sizeof(struct ipc_head) - 1},
               {MAGIC, sizeof(struct message) + 1}};

    for (size_t i = 0; i < ARRAY_SIZE(bad) + 1; i++) {
        AUTO(bed_close) struct bed b = {.link.sock = -1};
        char bytes[sizeof(struct message) + 1] = {0};

        bed_open(&b);
        b.refuse = i == ARRAY_SIZE(bad); /* the owner does not take it */
        memcpy(bytes, b.refuse ? &(uint32_t){MAGIC} : &bad[i].magic, sizeof(bad[i].magic));
        EXPECT(ipc_send(b.peer, bytes, b.refuse ? sizeof(struct message) : bad[i].len, NULL, 0) ==
               0);
        ipc_link_ready(&b.link);
        EXPECT(b.gone == 1 && b.r == -EPROTO && b.link.sock == -1);
    }
}

#define HOUR_NS 3600000000000ull

TEST(calls_have_a_deadline)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};
    struct message m;
    uint64_t start = clock_ns();

    /* However busy the machine is, an hour is not over yet, and a millisecond is after two. */
    kind.wait_ns = HOUR_NS;
    bed_open(&b);
    EXPECT(call(&b, NULL) == 0);
    EXPECT(ipc_link_due(&b.link) >= start + HOUR_NS && ipc_link_due(&b.link) < start + 2 * HOUR_NS);
    ipc_link_expire(&b.link);
    EXPECT(b.answers == 0 && b.link.n_open == 1);
    bed_close(&b);

    kind.wait_ns = 1000000;
    bed_open(&b);
    EXPECT(call(&b, NULL) == 0);
    unsigned n = fill(&b);
    EXPECT(call(&b, NULL) == 0 && b.link.n_unsent == 2);
    usleep(2000);
    kind.wait_ns = HOUR_NS;
    b.answers = 0;
    b.again = true;
    ipc_link_expire(&b.link);
    EXPECT(b.answers == 2 && b.r == -ETIMEDOUT && b.link.n_open == 2);
    EXPECT(ipc_link_due(&b.link) != UINT64_MAX);
    b.again = false;
    kind.wait_ns = 0;

    /* A call that was over before it was sent is not sent any more. */
    EXPECT(hear(&b, &m, NULL));
    uint64_t first = m.head.seq;
    for (unsigned i = 0; i < n; i++)
        EXPECT(hear(&b, &m, NULL) && m.head.seq == 0);
    ipc_link_ready(&b.link);
    EXPECT(hear(&b, &m, NULL) && m.head.seq == 0); /* what filled the socket */
    EXPECT(hear(&b, &m, NULL) && m.head.seq > first);
    EXPECT(hear(&b, &m, NULL) && m.head.seq > first);
    EXPECT(!hear(&b, &m, NULL));
    reply(&b, first); /* too late */
    ipc_link_ready(&b.link);
    EXPECT(b.answers == 2 && b.taken == 1);
}

TEST(another_socket_ends_the_calls_of_the_one_before)
{
    AUTO(bed_close) struct bed b = {.link.sock = -1};
    int pair[2];

    bed_open(&b);
    EXPECT(call(&b, NULL) == 0);
    fill(&b);
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    ipc_link_open(&b.link, pair[0]);
    EXPECT(b.answers == 1 && b.r == -EPIPE && b.link.n_unsent == 0 && b.link.opened == 2);
    EXPECT(ipc_link_events(&b.link) == POLLIN);
    close(b.peer);
    b.peer = pair[1];
    EXPECT(say(&b, "new", NULL, 0) == 0);
}

TAP_MAIN
