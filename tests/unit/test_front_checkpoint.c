/* The front's part of checkpoints by itself: notes, reports, which ones stay, and the record of
 * cells that could run again. */
#include "tap.h"

#include "lib/channel/wire.h"
#include "e2b_server.h"
#include "front/core/checkpoint_impl.h"
#include "front/core/replay_impl.h"

TAP_MAIN

#define KERNEL_A "11111111-2222-4333-8444-555555555555"
#define KERNEL_B "aaaaaaaa-2222-4333-8444-555555555555"

static int memfd_of(const char *text, size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, text, len) < 0)
        server_fail("memfd");
    return fd;
}

/* ---- what an agent says ---------------------------------------------------------------------- */

struct told {
    const char *id, *language, *cwd;
    uint32_t state, cells, pid, twin, n_env;
};

static json_t *read_told(const struct told *t, size_t cut)
{
    AUTO(strbuf_done) struct strbuf p = {0};

    strbuf_init(&p, 65536);
    wire_put_str(&p, t->id);
    wire_put_str(&p, t->language);
    wire_put_str(&p, t->cwd);
    wire_put_u32(&p, t->state);
    wire_put_u32(&p, t->cells);
    wire_put_u32(&p, 1);
    wire_put_u32(&p, !t->twin);
    wire_put_u32(&p, t->pid);
    wire_put_u32(&p, t->twin);
    wire_put_u32(&p, t->n_env);
    wire_put_str(&p, "SECRET=hush");
    return report_read_context(p.buf, p.len - cut);
}

TEST(contexts_are_read_and_judged)
{
    static const struct {
        struct told told;
        const char *reason; /* NULL: it can be copied */
    } cases[] = {
        {{KERNEL_A, "python", "/home/user", KERNEL_IDLE, 3, 17, 1, 1}, NULL},
        {{KERNEL_A, "python", "/x", KERNEL_IDLE, 3, 17, 0, 1}, "restart its context"},
        {{KERNEL_A, "python", "/x", KERNEL_BUSY, 3, 17, 1, 1}, "not idle"},
        {{KERNEL_A, "javascript", "/x", KERNEL_IDLE, 3, 17, 0, 1}, "Node.js has threads"},
        {{KERNEL_A, "bash", "/x", KERNEL_IDLE, 3, 17, 0, 1}, "another process"},
        {{KERNEL_A, "r", "/x", KERNEL_IDLE, 3, 17, 1, 1}, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_t *c = read_told(&cases[i].told, 0);
        EXPECT(json_is_true(json_object_get(c, "carried")) == !cases[i].reason);
        if (cases[i].reason)
            EXPECT(strstr(field_of(c, "reason"), cases[i].reason) != NULL);
        /* Variables are not taken along: they would end up in notes. */
        char *text = json_dumps(c, 0);
        EXPECT(strstr(text, "hush") == NULL);
        free(text);
        json_decref(c);
    }
    static const struct told none = {KERNEL_A, "python", "\xff\xfe", KERNEL_ABSENT, 0, 0, 0, 1};
    json_t *c = read_told(&none, 0);
    EXPECT_STR(field_of(c, "cwd"), "");
    EXPECT(!json_object_get(c, "reason"));
    json_decref(c);
}

TEST(what_no_agent_says_is_refused)
{
    static const struct told bad[] = {
        {"", "python", "/", KERNEL_IDLE, 1, 17, 1, 1},
        {KERNEL_A "x", "python", "/", KERNEL_IDLE, 1, 17, 1, 1},
        {KERNEL_A, "\xff", "/", KERNEL_IDLE, 1, 17, 1, 1},
        {KERNEL_A, "python", "/", KERNEL_IDLE, 1, UINT32_MAX, 1, 1},
        {KERNEL_A, "python", "/", KERNEL_IDLE, 1, 17, 1, 0},
        {KERNEL_A, "python", "/", KERNEL_IDLE, 1, 17, 1, UINT32_MAX},
    };
    static const struct told good = {KERNEL_A, "python", "/", KERNEL_IDLE, 1, 17, 1, 1};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(read_told(&bad[i], 0) == NULL);
    for (size_t cut = 1; cut < 60; cut++)
        EXPECT(read_told(&good, cut) == NULL);
}

/* ---- what the broker says -------------------------------------------------------------------- */

static json_t *report_of(const char *text, size_t len)
{
    AUTO(close_p) int fd = memfd_of(text, len);

    return report_read(fd);
}

static json_t *two_contexts(void)
{
    return json_pack("[{s:s,s:s,s:s,s:b,s:i,s:i,s:b},{s:s,s:s,s:s,s:b,s:i,s:i,s:b,s:s}]", "id",
                     KERNEL_A, "language", "python", "cwd", "/home/user", "default", 1, "cells", 2,
                     "pid", 17, "carried", 1, "id", KERNEL_B, "language", "javascript", "cwd", "",
                     "default", 1, "cells", 2, "pid", 18, "carried", 0, "reason", "threads");
}

TEST(reports_become_what_people_read)
{
    static const char text[] =
        "{\"kernels\":[{\"pid\":99},{\"pid\":18},{\"pid\":17,\"dropped\":[{\"fd\":5,\"what\":"
        "\"socket\"},{\"fd\":\"x\"},7]}]}";
    json_t *contexts = two_contexts(), *broker = report_of(text, strlen(text));

    EXPECT(report_mark_carried(contexts, broker) == 1);
    json_t *report = report_kernels(contexts, NULL), *list = json_object_get(report, "kernels");
    EXPECT(json_array_size(list) == 2);
    EXPECT_STR(field_of(json_array_get(list, 0), "contextId"), KERNEL_A);
    EXPECT_STR(field_of(json_array_get(list, 0), "state"), "carried");
    EXPECT(json_array_size(json_object_get(json_array_get(list, 0), "dropped")) == 3);
    /* That the broker names a kernel that it was not asked for changes nothing. */
    EXPECT_STR(field_of(json_array_get(list, 1), "state"), "fresh");
    EXPECT_STR(field_of(json_array_get(list, 1), "reason"), "threads");
    json_decref(report);

    report = report_kernels(contexts, "gone");
    EXPECT_STR(field_of(json_array_get(json_object_get(report, "kernels"), 0), "reason"), "gone");
    EXPECT_STR(field_of(json_array_get(json_object_get(report, "kernels"), 1), "reason"),
               "threads");
    json_decref(report);
    EXPECT(report_mark_carried(contexts, NULL) == 0);
    json_decref(contexts);
    json_decref(broker);
}

TEST(reports_are_bounded)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    int pipe_fds[2];

    strbuf_init(&text, 4u << 20);
    strbuf_addstr(&text, "{\"inTheWay\":[");
    for (int i = 0; i < 500; i++)
        strbuf_addf(&text, "%s{\"pid\":%d,\"command\":\"%0300d\",\"what\":[],\"holds\":null}",
                    i ? "," : "", i - 5, 1);
    strbuf_addstr(&text, "]}");
    json_t *broker = report_of(text.buf, text.len), *way = report_in_the_way(broker, "x");
    json_t *list = json_object_get(way, "inTheWay");
    EXPECT(json_array_size(list) == REPORT_WAY_MAX);
    EXPECT(json_integer_value(json_object_get(json_array_get(list, 0), "pid")) == 0);
    EXPECT(strlen(field_of(json_array_get(list, 7), "command")) == 256);
    EXPECT_STR(field_of(json_array_get(list, 7), "what"), "");
    EXPECT_STR(field_of(json_array_get(list, 7), "remedy"), "");
    json_decref(way);
    json_decref(broker);

    /* A text is cut between characters. */
    strbuf_reset(&text);
    strbuf_addstr(&text, "{\"inTheWay\":[{\"command\":\"x");
    for (int i = 0; i < 200; i++)
        strbuf_addstr(&text, "\xe2\x82\xac");
    strbuf_addstr(&text, "\"}]}");
    broker = report_of(text.buf, text.len);
    way = report_in_the_way(broker, "x");
    EXPECT(strlen(field_of(json_array_get(json_object_get(way, "inTheWay"), 0), "command")) == 256);
    json_decref(way);
    json_decref(broker);

    static const char *const bad[] = {"",  "[]",          "{\"kernels\":",   "{}x",
                                      "7", "\"\\ud800\"", "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(report_of(bad[i], strlen(bad[i])) == NULL);
    strbuf_reset(&text);
    for (size_t i = 0; i < 300 * 1024; i++)
        strbuf_add(&text, " ", 1);
    EXPECT(report_of(text.buf, text.len) == NULL);
    strbuf_reset(&text);
    for (size_t i = 0; i < 10000; i++)
        strbuf_addstr(&text, "[");
    EXPECT(report_of(text.buf, text.len) == NULL);
    /* What is no file is not read: it might never end. */
    EXPECT(pipe(pipe_fds) == 0 && report_read(pipe_fds[0]) == NULL && report_read(-1) == NULL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    way = report_in_the_way(NULL, "a file");
    EXPECT_STR(field_of(json_array_get(json_object_get(way, "inTheWay"), 0), "holds"), "a file");
    json_decref(way);
    way = report_cell_in_the_way("\xff");
    EXPECT(json_array_size(json_object_get(way, "inTheWay")) == 1);
    json_decref(way);
}

/* ---- notes ----------------------------------------------------------------------------------- */

#define SANDBOX "bbbbbbbbbbbbbbbbbbbb"

static struct sandbox *bare_sandbox(void)
{
    struct sandbox_spec spec;

    sandbox_spec_init(&spec);
    memcpy(spec.tenant, server.acme_tenant.id, sizeof(spec.tenant));
    spec.envs = json_object();
    return sandbox_new(&server.front, SANDBOX, &spec);
}

static struct checkpoint *new_one(const char *name, enum checkpoint_kind kind, uint64_t serial)
{
    struct checkpoint *c = checkpoint_new(&server.front);

    c->kind = kind;
    c->serial = serial;
    c->at_ms = clock_wall_ms();
    c->contexts = two_contexts();
    memcpy(c->tenant, server.acme_tenant.id, sizeof(c->tenant));
    memcpy(c->sandbox_id, SANDBOX, sizeof(c->sandbox_id));
    snprintf(c->name, sizeof(c->name), "%s", name);
    return c;
}

static void tell(const char *name, int note, uint32_t flags)
{
    struct order_answer a = {.tell = TELL_CHECKPOINT, .flags = flags};

    a.stats.memory_used = 4096;
    snprintf(a.snapshot, sizeof(a.snapshot), "%s", name);
    memcpy(a.tenant, server.acme_tenant.id, sizeof(a.tenant));
    memcpy(a.id, SANDBOX, sizeof(a.id));
    checkpoint_told(&server.front, &a, note);
}

TEST(a_later_front_finds_them)
{
    static const char name[] = "cccccccccccccccccccc", fork[] = "dddddddddddddddddddd";
    struct checkpoint *c = new_one(name, CHECKPOINT_LABEL, 41);
    struct sandbox *b = bare_sandbox();
    struct sg_error e;

    sandboxes_add(b);
    snprintf(c->label, sizeof(c->label), "m\xc3\xa9ssage");
    snprintf(c->parent, sizeof(c->parent), "%s", fork);
    int note = checkpoint_note_save(c, &e);
    EXPECT(note >= 0);
    checkpoint_unref(c);
    tell(name, note, TELL_KERNELS);
    c = checkpoint_find(&server.front, server.acme_tenant.id, name);
    EXPECT(c && c->kernels && c->serial == 41 && c->kind == CHECKPOINT_LABEL);
    EXPECT_STR(c->label, "m\xc3\xa9ssage");
    EXPECT_STR(c->parent, fork);
    EXPECT_STR(c->sandbox_id, SANDBOX);
    EXPECT(json_array_size(c->contexts) == 2);
    EXPECT(checkpoints_memory(&server.front, server.acme_tenant.id) == 4096);
    EXPECT(checkpoints_serial(&server.front) >= 41);
    EXPECT(checkpoint_find(&server.front, "othertenantothertena", name) == NULL);

    /* One that was for a request of the last front has nobody. */
    c = new_one(fork, CHECKPOINT_FORK, 42);
    note = checkpoint_note_save(c, &e);
    checkpoint_unref(c);
    server.n_orders = 0;
    tell(fork, note, TELL_KERNELS);
    server_turn(-1);
    EXPECT(!checkpoint_find(&server.front, server.acme_tenant.id, fork));
    EXPECT_STR(last_order(ORDER_FORGET)->snapshot, fork);
    /* Nor has one of a snapshot that nobody wrote down. */
    c = new_one(fork, CHECKPOINT_SNAPSHOT, 43);
    note = checkpoint_note_save(c, &e);
    checkpoint_unref(c);
    tell(fork, note, TELL_KERNELS);
    EXPECT(checkpoint_find(&server.front, server.acme_tenant.id, fork) != NULL);
    checkpoints_match_store(&server.front);
    EXPECT(!checkpoint_find(&server.front, server.acme_tenant.id, fork));
    EXPECT(checkpoint_find(&server.front, server.acme_tenant.id, name) != NULL);

    struct order_answer gone = {.tell = TELL_CHECKPOINT_GONE};
    memcpy(gone.snapshot, name, sizeof(name));
    checkpoint_told_lost(&server.front, &gone);
    EXPECT(checkpoints_memory(&server.front, server.acme_tenant.id) == 0);
    checkpoint_told_gone(&server.front, &gone);
    EXPECT(!checkpoint_find(&server.front, server.acme_tenant.id, name));
    checkpoint_told_gone(&server.front, &gone);

    /* One whose sandbox is gone is of no use. */
    sandboxes_remove(b);
    c = new_one(name, CHECKPOINT_LABEL, 44);
    note = checkpoint_note_save(c, &e);
    checkpoint_unref(c);
    tell(name, note, TELL_KERNELS);
    EXPECT(!checkpoint_find(&server.front, server.acme_tenant.id, name));
    sandbox_unref(b);
}

TEST(notes_are_checked)
{
    static const char good[] = "{\"sandbox\":\"" SANDBOX "\",\"kind\":\"label\",\"label\":\"\","
                               "\"parent\":\"\",\"serial\":1,\"atMs\":1,\"contexts\":[%s]}";
    static const char *const entries[] = {
        "7",
        "{}",
        "{\"id\":\"x\",\"language\":\"y\",\"cwd\":\"z\",\"cells\":1}",
        "{\"id\":7,\"language\":\"y\",\"cwd\":\"z\",\"cells\":1,\"pid\":1}",
        "{\"id\":\"" KERNEL_A "y\",\"language\":\"y\",\"cwd\":\"z\",\"cells\":1,\"pid\":1}",
    };
    static const char *const bad[] = {
        "", "[]", "{}",
        "{\"sandbox\":\"short\",\"kind\":\"label\",\"label\":\"\",\"parent\":\"\"}"};
    struct checkpoint *c = new_one("x", CHECKPOINT_LABEL, 1);
    char text[1024];

    json_decref(steal_ptr(&c->contexts));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        AUTO(close_p) int fd = memfd_of(bad[i], strlen(bad[i]));
        EXPECT(checkpoint_note_load(fd, c, NULL) < 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        char *p = strstr(good, "%s");
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(p - good), good, entries[i], p + 2);
        AUTO(close_p) int fd = memfd_of(text, strlen(text));
        EXPECT(checkpoint_note_load(fd, c, NULL) < 0);
    }
    checkpoint_unref(c);
}

/* ---- which stay ------------------------------------------------------------------------------ */

static void numbered(unsigned i, char name[ID_LEN + 1])
{
    snprintf(name, ID_LEN + 1, "cp%018u", i);
}

static bool collect(struct checkpoint *c, void *arg)
{
    json_array_append_new(arg, json_integer((json_int_t)c->serial));
    return true;
}

static json_int_t at(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

TEST(the_older_the_fewer)
{
    struct settings *s = &server.front.settings;
    uint64_t first = checkpoints_serial(&server.front) + 1;
    char name[ID_LEN + 1];
    struct sandbox *b = bare_sandbox();

    sandboxes_add(b);
    for (unsigned i = 0; i < 1000; i++) {
        numbered(i, name);
        struct checkpoint *c = new_one(name, CHECKPOINT_LABEL, first + i);
        snprintf(c->label, sizeof(c->label), "m%u", i);
        checkpoint_add(c);
        checkpoints_thin(&server.front, lineage_find(&server.front, SANDBOX));
        checkpoint_unref(c);
        if (i % 50 == 0)
            server_turn(-1);
        server.n_orders = 0;
    }
    json_t *kept = json_array();
    checkpoints_each(&server.front, SANDBOX, collect, kept);
    size_t n = json_array_size(kept);
    EXPECT(n == s->checkpoint_max);
    EXPECT((uint64_t)at(kept, 0) == first); /* the very first */
    for (size_t i = 0; i < s->checkpoint_keep; i++)
        EXPECT((uint64_t)at(kept, n - 1 - i) == first + 999 - i);
    /* Gaps grow with age: the oldest half of what is thinned is much sparser than the newest. */
    json_int_t old_gap = at(kept, 3) - at(kept, 0), new_gap = at(kept, 12) - at(kept, 9);
    EXPECT(old_gap > 10 * new_gap && new_gap > 0);
    EXPECT(checkpoint_labelled(&server.front, SANDBOX, "m999") != NULL);
    EXPECT(checkpoint_was_thinned(&server.front, SANDBOX, "m970"));
    EXPECT(!checkpoint_was_thinned(&server.front, SANDBOX, "m0"));
    EXPECT(!checkpoint_was_thinned(&server.front, SANDBOX, "m1000"));
    json_decref(kept);

    /* One that is in use stays, whatever it is. */
    struct checkpoint *used = checkpoint_ref(checkpoint_labelled(&server.front, SANDBOX, "m990"));
    s->checkpoint_age_ms = 1000;
    for (unsigned i = 980; i < 1000; i++) {
        char label[16];
        snprintf(label, sizeof(label), "m%u", i);
        checkpoint_labelled(&server.front, SANDBOX, label)->at_ms -= 5000;
    }
    checkpoints_thin(&server.front, lineage_find(&server.front, SANDBOX));
    EXPECT(checkpoint_labelled(&server.front, SANDBOX, "m990") == used);
    EXPECT(!checkpoint_labelled(&server.front, SANDBOX, "m991"));
    checkpoint_unref(used);
    settings_init(s);

    /* With their sandbox they all go. */
    sandboxes_remove(b);
    checkpoints_sandbox_ended(b);
    EXPECT(lineage_find(&server.front, SANDBOX) == NULL);
    sandbox_unref(b);
    server_turn(-1);
    server.n_orders = 0;
}

/* ---- the record of cells --------------------------------------------------------------------- */

static void run(struct sandbox *b, const char *context, const char *language, uint32_t number,
                const char *code, const char *says)
{
    struct cell_history *t = cell_history_new(b, context, language, code, strlen(code), NULL);

    cell_history_running(t, number);
    cell_history_add(t, CHAN_STDOUT, says, strlen(says));
    cell_history_end(t, NULL);
}

static json_t *contexts_that_ran(int javascript, int python)
{
    return json_pack("[{s:s,s:s,s:b,s:i,s:i,s:b},{s:s,s:s,s:b,s:i,s:i,s:b}]", "id", KERNEL_A,
                     "language", "javascript", "default", 1, "cells", javascript, "pid", 17,
                     "carried", 0, "id", KERNEL_B, "language", "python", "default", 1, "cells",
                     python, "pid", 18, "carried", 0);
}

TEST(cells_are_recorded_in_order)
{
    struct sandbox *b = bare_sandbox();

    run(b, "", "js", 1, "let a = 0", "old");
    run(b, "", "javascript", 1, "let a = 1", "");
    run(b, KERNEL_A, "", 2, "console.log(a)", "1\n"); /* the same one, by its id */
    run(b, "", "python", 1, "print(1)", "1\n");
    run(b, "", "", 2, "print(1)", "1\n");
    json_t *contexts = contexts_that_ran(2, 2), *cells = replay_of(b, contexts);
    EXPECT(json_array_size(cells) == 1);
    const json_t *list = json_object_get(json_array_get(cells, 0), "cells");
    EXPECT(json_array_size(list) == 2);
    EXPECT_STR(field_of(json_array_get(list, 0), "code"), "let a = 1");
    EXPECT_STR(field_of(json_array_get(list, 1), "shown"), "1\n");
    EXPECT(strlen(field_of(json_array_get(list, 1), "digest")) == CELL_HISTORY_DIGEST_LEN);
    EXPECT(strstr(field_of(json_array_get(contexts, 1), "unrecorded"), "Python") != NULL);
    json_decref(contexts);
    json_decref(cells);

    /* More cells ran than there are on record: a front before this one had them. */
    contexts = contexts_that_ran(3, 0);
    EXPECT(replay_of(b, contexts) == NULL);
    EXPECT(strstr(field_of(json_array_get(contexts, 0), "unrecorded"), "not all") != NULL);
    json_decref(contexts);

    /* One that was cut off cannot be run again to the same place. */
    struct cell_history *t = cell_history_new(b, "", "javascript", "for (;;);", 9, NULL);
    cell_history_running(t, 3);
    cell_history_free(t);
    contexts = contexts_that_ran(3, 0);
    EXPECT(replay_of(b, contexts) == NULL);
    EXPECT(strstr(field_of(json_array_get(contexts, 0), "unrecorded"), "interrupted") != NULL);
    json_decref(contexts);
    run(b, "", "javascript", 1, "1", "");
    contexts = contexts_that_ran(1, 0);
    cells = replay_of(b, contexts);
    EXPECT(json_array_size(cells) == 1);
    json_decref(cells);
    json_decref(contexts);
    sandbox_unref(b);
}

TEST(the_record_is_bounded)
{
    struct sandbox *b = bare_sandbox();
    char *big = xcalloc(1, REPLAY_BYTES + 2);

    memset(big, 'x', REPLAY_BYTES + 1);
    for (uint32_t i = 1; i <= REPLAY_CELLS + 1; i++)
        run(b, "", "bash", i, "true", "");
    for (uint32_t i = 1; i <= 3; i++)
        run(b, "", "javascript", i, "1", "");
    json_t *contexts = contexts_that_ran(3, 0), *cells = replay_of(b, contexts);
    EXPECT(json_array_size(cells) == 1); /* what did not fit has made room for others */
    json_decref(cells);
    run(b, "", "javascript", 4, big, "");
    json_decref(contexts);
    contexts = contexts_that_ran(4, 0);
    EXPECT(replay_of(b, contexts) == NULL);
    EXPECT(strstr(field_of(json_array_get(contexts, 0), "unrecorded"), "more cells") != NULL);
    json_decref(contexts);
    free(big);
    sandbox_unref(b);
}

static void digest_of(char digest[CELL_HISTORY_DIGEST_LEN + 1], char shown[REPLAY_SHOWN_MAX + 1],
                      bool by_bytes, const char *out, const char *err)
{
    static const char packet[] = "Ttext\0[1, 2]", plain[] = "Rm";
    struct cell_history_sum s;

    cell_history_sum_init(&s);
    for (size_t i = 0; by_bytes && i < strlen(out); i++)
        cell_history_sum_add(&s, CHAN_STDOUT, out + i, 1);
    cell_history_sum_add(&s, CHAN_STDERR, err, strlen(err));
    if (!by_bytes)
        cell_history_sum_add(&s, CHAN_STDOUT, out, strlen(out));
    cell_history_sum_add(&s, CHAN_KERNEL, plain, sizeof(plain) - 1);
    cell_history_sum_add(&s, CHAN_KERNEL, packet, sizeof(packet) - 1);
    cell_history_sum_end(&s, NULL, digest, shown);
    cell_history_sum_done(&s);
}

TEST(what_a_cell_said_is_compared_by_streams)
{
    char one[CELL_HISTORY_DIGEST_LEN + 1], two[CELL_HISTORY_DIGEST_LEN + 1],
        shown[REPLAY_SHOWN_MAX + 1];
    char euros[1000] = "x";

    digest_of(one, shown, false, "hello", "oops");
    digest_of(two, shown, true, "hello", "oops");
    EXPECT_STR(one, two);
    EXPECT_STR(shown, "hellooops[1, 2]\n");
    digest_of(two, shown, false, "hell", "ooops");
    EXPECT(strcmp(one, two) != 0);
    for (int i = 0; i < 300; i++)
        memcpy(euros + 1 + 3 * (size_t)i, "\xe2\x82\xac", 3);
    digest_of(one, shown, false, euros, "");
    EXPECT(strlen(shown) <= REPLAY_SHOWN_MAX);
    json_t *v = json_string(shown);
    EXPECT(v != NULL && shown[1] == '\xe2');
    json_decref(v);
    digest_of(one, shown, false, "\xff\xfe", "");
    EXPECT(strncmp(shown, "??", 2) == 0);
}
