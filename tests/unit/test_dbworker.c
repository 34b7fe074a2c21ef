/* The socket pair between the front and the database worker: what the wire carries, and what each
 * side does when the other sends what cannot be. No database. */
#include "pg_rig.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "lib/base/fd.h"
#include "lib/ipc/ipc.h"
#include "wire/worker.h"
#include "front/store/dbworker_process.h"
#include "front/store/dbworker_wire.h"

TAP_MAIN

struct wires {
    int ours, theirs;
};

static struct wires wires_make(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        rig_bail("no socket pair");
    return (struct wires){pair[0], pair[1]};
}

static void send_message(int sock, enum wire_kind kind, uint64_t seq, const struct strbuf *message)
{
    size_t offset = 0;
    int r = 0;

    while (r == 0)
        r = wire_send_next(sock, kind, seq, message, &offset);
    EXPECT(r == 1);
}

/* ---- the wire -------------------------------------------------------------------------------- */

static void check_message(size_t len)
{
    struct wires w = wires_make();
    struct strbuf message;
    struct wire_in in = {0};
    int r = 0;

    strbuf_init(&message, WIRE_MESSAGE_MAX);
    while (message.len < len)
        strbuf_addch(&message, (char)('a' + message.len % 26));
    pid_t pid = fork();
    if (pid == 0) {
        send_message(w.theirs, WIRE_CALL, 77, &message);
        _exit(0);
    }
    while (r == 0)
        r = wire_receive(w.ours, &in);
    EXPECT(r == 1 && in.head.seq == 77 && in.head.kind == WIRE_CALL && in.len == len);
    EXPECT(in.buf && memcmp(in.buf, message.buf, len + 1) == 0);
    wire_in_done(&in);
    strbuf_done(&message);
    waitpid(pid, NULL, 0);
    close(w.ours);
    close(w.theirs);
}

TEST(messages_of_all_sizes)
{
    static const size_t sizes[] = {0,
                                   1,
                                   WIRE_PACKET_MAX - sizeof(struct wire_header) - 1,
                                   WIRE_PACKET_MAX - sizeof(struct wire_header),
                                   WIRE_PACKET_MAX - sizeof(struct wire_header) + 1,
                                   300000,
                                   WIRE_MESSAGE_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        check_message(sizes[i]);
}

TEST(texts_come_back)
{
    struct strbuf out;

    strbuf_init(&out, 1000);
    wire_add_text(&out, "one");
    wire_add_text(&out, NULL);
    wire_add_u32(&out, 7);
    wire_add_text(&out, "");
    struct wire_reader r = {.at = out.buf, .end = out.buf + out.len};
    EXPECT_STR(wire_read_text(&r), "one");
    EXPECT(wire_read_text(&r) == NULL && !r.bad);
    EXPECT(wire_read_u32(&r) == 7);
    EXPECT_STR(wire_read_text(&r), "");
    EXPECT(!r.bad && r.at == r.end);
    EXPECT(wire_read_text(&r) == NULL && r.bad);
    /* Cut anywhere: an end, never a byte beyond it. */
    for (size_t len = 0; len < out.len; len++) {
        char *cut = malloc(len + 1);

        memcpy(cut, out.buf, len);
        r = (struct wire_reader){.at = cut, .end = cut + len};
        wire_read_text(&r);
        wire_read_text(&r);
        wire_read_u32(&r);
        wire_read_text(&r);
        EXPECT(r.bad);
        free(cut);
    }
    strbuf_done(&out);
}

/* ---- nonsense -------------------------------------------------------------------------------- */

/* Bad packets, by number; false after the last. `seq`: of the call that is waited for. */
static bool send_bad(int sock, int which, uint64_t seq)
{
    static char large[WIRE_PACKET_MAX + 4096];
    AUTO(strbuf_done) struct strbuf text = {0};
    struct wire_header h;
    size_t offset = 0;

    strbuf_init(&text, WIRE_MESSAGE_MAX);
    wire_add_text(&text, NULL);
    if (which < 5) {
        /* A header as it should be, to spoil. */
        struct wires w = wires_make();
        send_message(w.ours, WIRE_ANSWER, seq, &text);
        EXPECT(recv(w.theirs, &h, sizeof(h), 0) == sizeof(h));
        close(w.ours);
        close(w.theirs);
    }
    switch (which) {
    case 0:
        h.magic++;
        return send(sock, &h, sizeof(h), 0) > 0;
    case 1:
        h.total = WIRE_MESSAGE_MAX + 1;
        return send(sock, &h, sizeof(h), 0) > 0;
    case 2:
        h.offset = 1;
        return send(sock, &h, sizeof(h), 0) > 0;
    case 3: /* a piece that is none */
        return send(sock, &h, sizeof(h), 0) > 0;
    case 4:
        h.kind = 1000;
        return send(sock, &h, sizeof(h), 0) > 0;
    case 5:
        return send(sock, "short", 5, 0) > 0;
    case 6:
        return send(sock, large, sizeof(large), 0) > 0;
    case 7: /* another message before the first is whole */
        while (text.len < WIRE_PACKET_MAX)
            strbuf_addch(&text, 'x');
        EXPECT(wire_send_next(sock, WIRE_ANSWER, seq, &text, &offset) == 0);
        EXPECT(wire_send_next(sock, WIRE_ANSWER, seq + 1, &text, &offset) == 1);
        return true;
    case 8: /* a kind that this side sends itself, or that means nothing to it */
        send_message(sock, WIRE_CONNECT, seq, &text);
        return true;
    case 9: /* nobody asked */
        send_message(sock, WIRE_ANSWER, seq + 5, &text);
        return true;
    case 10: /* cells that are not there */
        wire_add_u32(&text, 1000);
        wire_add_u32(&text, 1000);
        send_message(sock, WIRE_ANSWER, seq, &text);
        return true;
    case 11:
        wire_add_u32(&text, UINT32_MAX);
        wire_add_u32(&text, UINT32_MAX);
        send_message(sock, WIRE_ANSWER, seq, &text);
        return true;
    case 12:
        wire_add_u32(&text, 1);
        wire_add_u32(&text, 1);
        wire_add_u32(&text, 50);
        strbuf_addstr(&text, "less");
        send_message(sock, WIRE_ANSWER, seq, &text);
        return true;
    case 13: /* a text with a NUL inside */
        wire_add_u32(&text, 1);
        wire_add_u32(&text, 1);
        wire_add_u32(&text, 3);
        strbuf_add(&text, "a\0b", 4);
        send_message(sock, WIRE_ANSWER, seq, &text);
        return true;
    case 14: /* no line */
        send_message(sock, WIRE_NOTE, 0, &text);
        return true;
    default:
        return false;
    }
}

struct waiting {
    int came, r;
};

static void on_rows(void *arg, const struct dbworker_rows *rows)
{
    struct waiting *w = arg;

    w->came++;
    w->r = rows->r;
    EXPECT(rows->r == -EAGAIN && rows->e.code == -EAGAIN && rows->e.message[0]);
}

/* A database worker that is only a socket, so that the test can speak for it. */
static struct dbworker *fake_dbworker(uv_loop_t *loop, struct wires *w)
{
    struct dbworker *c = dbworker_new(loop, pg_log);

    *w = wires_make();
    dbworker_set_socket(c, w->ours);
    dbworker_connect(c, "host=nowhere");
    return c;
}

static uint64_t receive_call(int sock)
{
    struct wire_in in = {0};
    int r = 0;

    while (r == 0 || (r == 1 && in.head.kind != WIRE_CALL)) {
        if (r == 1)
            wire_in_done(&in);
        r = wire_receive(sock, &in);
    }
    EXPECT(r == 1);
    uint64_t seq = in.head.seq;
    wire_in_done(&in);
    return seq;
}

TEST(the_front_does_not_believe_nonsense)
{
    for (int which = 0;; which++) {
        uv_loop_t loop;
        struct wires w;
        struct waiting waits = {0};

        EXPECT(uv_loop_init(&loop) == 0);
        struct dbworker *c = fake_dbworker(&loop, &w);
        dbworker_call(c, "SELECT 1", "tenant", NULL, 0, on_rows, &waits);
        uint64_t seq = receive_call(w.theirs);
        pg_gone = 0;
        bool sent = send_bad(w.theirs, which, seq);
        if (sent) {
            rig_run_until(&loop, &pg_gone, 1);
            EXPECT(pg_gone == 1 && waits.came == 1);
            /* Whoever calls now waits for the next. */
            dbworker_call(c, "SELECT 1", "tenant", NULL, 0, on_rows, &waits);
            uv_run(&loop, UV_RUN_NOWAIT);
            EXPECT(waits.came == 1);
        }
        dbworker_dismiss(c);
        uv_run(&loop, UV_RUN_DEFAULT);
        EXPECT(waits.came == (sent ? 2 : 1));
        EXPECT(uv_loop_close(&loop) == 0);
        close(w.theirs);
        if (!sent)
            break;
    }
}

TEST(a_dbworker_that_ends_is_noticed)
{
    uv_loop_t loop;
    struct dbworker *c = NULL;
    struct wires w;
    struct waiting waits = {0};

    EXPECT(uv_loop_init(&loop) == 0);
    c = fake_dbworker(&loop, &w);
    for (int i = 0; i < 3; i++)
        dbworker_call(c, "SELECT 1", NULL, NULL, 0, on_rows, &waits);
    pg_gone = 0;
    close(w.theirs);
    rig_run_until(&loop, &pg_gone, 1);
    EXPECT(waits.came == 3);
    EXPECT(strstr(pg_logged, "has ended"));
    dbworker_dismiss(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* How the database worker ends, or -1 if it does not. */
static int dbworker_status(pid_t pid)
{
    uint64_t end = clock_ns() + RIG_WAIT_MS * 1000000ull;
    int status;

    while (clock_ns() < end) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        usleep(1000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

static pid_t real_dbworker(struct wires *w)
{
    *w = wires_make();
    pid_t pid = fork();
    if (pid == 0) {
        close(w->ours);
        dbworker_process(-1, w->theirs, NULL);
    }
    close(w->theirs);
    return pid;
}

TEST(the_dbworker_does_not_believe_nonsense)
{
    for (int which = 0; which < 8; which++)
        for (int connected = 0; connected < 2; connected++) {
            struct wires w;
            pid_t pid = real_dbworker(&w);
            struct strbuf text;

            strbuf_init(&text, 1000);
            wire_add_text(&text, "host=/nowhere dbname=x");
            if (connected)
                send_message(w.ours, WIRE_CONNECT, 0, &text);
            EXPECT(send_bad(w.ours, which, 1));
            EXPECT(dbworker_status(pid) >= 0);
            strbuf_done(&text);
            close(w.ours);
        }
}

static void send_call(int sock, uint32_t params, uint32_t given)
{
    AUTO(strbuf_done) struct strbuf text = {0};

    strbuf_init(&text, 1000);
    wire_add_text(&text, "SELECT 1");
    wire_add_text(&text, NULL);
    wire_add_u32(&text, params);
    for (uint32_t i = 0; i < given; i++)
        wire_add_text(&text, "p");
    send_message(sock, WIRE_CALL, 1, &text);
}

TEST(the_dbworker_counts_parameters)
{
    static const struct {
        uint32_t params, given;
    } bad[] = {{3, 2}, {2, 3}, {DBWORKER_PARAMS_MAX + 1, DBWORKER_PARAMS_MAX + 1}, {UINT32_MAX, 1}};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct wires w;
        pid_t pid = real_dbworker(&w);
        struct strbuf text;

        strbuf_init(&text, 1000);
        wire_add_text(&text, "host=/nowhere dbname=x");
        send_message(w.ours, WIRE_CONNECT, 0, &text);
        send_call(w.ours, bad[i].params, bad[i].given);
        EXPECT(dbworker_status(pid) == 1);
        strbuf_done(&text);
        close(w.ours);
    }
}

TEST(the_dbworker_ends_with_the_front)
{
    struct wires w;
    pid_t pid = real_dbworker(&w);

    close(w.ours);
    EXPECT(dbworker_status(pid) == 0);
}

static void expect_address(int sock)
{
    struct wire_in in = {0};
    int r = 0;

    while (r == 0)
        r = wire_receive(sock, &in);
    EXPECT(r == 1 && in.head.kind == WIRE_CONNECT && memmem(in.buf, in.len, "host=nowhere", 12));
    wire_in_done(&in);
}

TEST(what_waits_goes_to_the_next_dbworker)
{
    uv_loop_t loop;
    struct wires w;
    struct waiting sent = {0}, waits = {0};

    EXPECT(uv_loop_init(&loop) == 0);
    struct dbworker *c = fake_dbworker(&loop, &w);
    expect_address(w.theirs);
    dbworker_call(c, "SELECT 1", NULL, NULL, 0, on_rows, &sent);
    uint64_t first = receive_call(w.theirs);
    close(w.theirs);
    rig_run_until(&loop, &sent.came, 1); /* nobody knows what came of it */
    dbworker_call(c, "SELECT 2", NULL, NULL, 0, on_rows, &waits);
    w = wires_make();
    dbworker_set_socket(c, w.ours);
    expect_address(w.theirs);
    EXPECT(receive_call(w.theirs) != first && waits.came == 0);
    dbworker_dismiss(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(waits.came == 1 && sent.came == 1);
    EXPECT(uv_loop_close(&loop) == 0);
    close(w.theirs);
}

TEST(nobody_waits_for_long_for_a_dbworker)
{
    uv_loop_t loop;
    struct wires w;
    struct waiting waits = {0};

    EXPECT(uv_loop_init(&loop) == 0);
    struct dbworker *c = fake_dbworker(&loop, &w);
    close(w.theirs);
    pg_gone = 0;
    rig_run_until(&loop, &pg_gone, 1);
    dbworker_call(c, "SELECT 1", NULL, NULL, 0, on_rows, &waits);
    rig_run_until(&loop, &waits.came, 1);
    dbworker_call(c, "SELECT 1", NULL, NULL, 0, on_rows, &waits); /* at once from now on */
    EXPECT(waits.came == 1);
    uv_run(&loop, UV_RUN_NOWAIT);
    rig_run_until(&loop, &waits.came, 2);
    dbworker_dismiss(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(waits.came == 2);
    EXPECT(uv_loop_close(&loop) == 0);
}

/* As the warden's word would: one front after the other. */
TEST(a_dbworker_serves_the_next_front)
{
    struct wires control = wires_make(), first = wires_make(), second = wires_make();
    struct worker_message m = {.magic = WORKER_MAGIC, .what = WORKER_FRONT};
    struct strbuf text;
    pid_t pid = fork();

    if (pid == 0) {
        close(control.ours);
        close(first.ours);
        close(second.ours);
        fd_set_nonblock(control.theirs, true);
        dbworker_process(control.theirs, -1, NULL);
    }
    close(control.theirs);
    strbuf_init(&text, 1000);
    wire_add_text(&text, "host=/nowhere dbname=x");
    for (int i = 0; i < 2; i++) {
        struct wires *w = i ? &second : &first;
        struct wire_in in = {0};
        int r = 0;

        EXPECT(ipc_send(control.ours, &m, sizeof(m), &w->theirs, 1) == 0);
        close(w->theirs);
        send_message(w->ours, WIRE_CONNECT, 0, &text);
        send_call(w->ours, 0, 0);
        while (r == 0 || (r == 1 && in.head.kind != WIRE_ANSWER)) {
            if (r == 1)
                wire_in_done(&in);
            r = wire_receive(w->ours, &in);
        }
        EXPECT(r == 1);
        wire_in_done(&in);
        close(w->ours);
    }
    strbuf_done(&text);
    close(control.ours);
    EXPECT(dbworker_status(pid) == 0);
}

TEST(too_many_calls_are_refused_at_once)
{
    uv_loop_t loop;
    struct wires w;
    struct waiting waits = {0};
    const int extra = 3;

    EXPECT(uv_loop_init(&loop) == 0);
    struct dbworker *c = fake_dbworker(&loop, &w);
    for (int i = 0; i < DBWORKER_CALLS_MAX + extra; i++)
        dbworker_call(c, "SELECT 1", NULL, NULL, 0, on_rows, &waits);
    EXPECT(waits.came == 0);
    rig_run_until(&loop, &waits.came, extra);
    EXPECT(waits.came == extra);
    dbworker_dismiss(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    EXPECT(waits.came == DBWORKER_CALLS_MAX + extra);
    EXPECT(uv_loop_close(&loop) == 0);
    close(w.theirs);
}
