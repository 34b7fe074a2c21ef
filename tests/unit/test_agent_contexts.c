/* Contexts: which there are, what becomes of them, and of which languages. */
#include "agent_kernel.h"

TEST(contexts_are_apart)
{
    struct agent_host h;
    struct call c;
    char python[KERNEL_ID_LEN + 1], script[KERNEL_ID_LEN + 1], id[KERNEL_ID_LEN + 1];

    host_start(&h);
    default_id(&h, "python", python);
    default_id(&h, "javascript", script);
    EXPECT_STR(context_line(&h, python), "python /home/user 0 0 1");
    EXPECT_STR(context_line(&h, script), "javascript /home/user 0 0 1");
    context_create(&h, "PYTHON", "new/place", id);
    EXPECT(id[8] == '-' && id[14] == '4' && strspn(id, "0123456789abcdef-") == KERNEL_ID_LEN);
    EXPECT_STR(context_line(&h, id), "python /home/user/new/place 0 0 0");

    EXPECT(cell_in(&h, &c, id, "", "import os\ny = 1\nprint(os.getcwd())") == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "/home/user/new/place\n");
    call_done(&c);
    EXPECT(strstr(cell_story(&h, "y"), "NameError"));
    EXPECT_STR(context_line(&h, id), "python /home/user/new/place 2 1 0");
    EXPECT_STR(context_line(&h, python), "python /home/user 2 1 1");

    EXPECT(kernel_op(&h, OP_KERNEL_REMOVE, id) == 0);
    EXPECT_STR(context_line(&h, id), "");
    EXPECT(kernel_op(&h, OP_KERNEL_REMOVE, id) == ENOENT);
    EXPECT(kernel_op(&h, OP_KERNEL_RESTART, id) == ENOENT);
    EXPECT(kernel_op(&h, OP_KERNEL_INTERRUPT, id) == ENOENT);
    CALL(&h, &c, OP_KERNEL_EXECUTE, "ssUuu", id, "", (uint64_t)0, 0u, 0u);
    EXPECT(c.status == ENOENT);
    call_done(&c);
    /* kernels are not among the processes that the host started */
    CALL(&h, &c, OP_PROCESS_LIST, "");
    EXPECT(c.status == 0 && c.out.len == 0);
    call_done(&c);
    host_stop(&h);
}

TEST(a_directory_that_cannot_be_is_the_home)
{
    struct agent_host h;
    struct call c;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    context_create(&h, "", "/root/not/for/you", id);
    EXPECT(cell_in(&h, &c, id, "", "import os\nprint(os.getcwd())") == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "/home/user\n");
    call_done(&c);
    host_stop(&h);
}

TEST(restart_and_remove)
{
    struct agent_host h;
    struct call c, waits, after;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    default_id(&h, "python", id);
    EXPECT(kernel_op(&h, OP_KERNEL_RESTART, id) == 0);
    EXPECT_STR(context_line(&h, id), "python /home/user 0 0 1"); /* there was none to restart */

    call_open(&h, &c, OP_KERNEL_EXECUTE, "ssUusu", id, "", (uint64_t)0, 1u, "A=env", 0u);
    cell_send(&h, &c, "x = 1");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    call_done(&c);
    open_forever(&h, &c, id, 0);
    cell_open(&h, &waits, id, "", 0, "print(1)");
    EXPECT(kernel_op(&h, OP_KERNEL_RESTART, id) == 0);
    EXPECT(cell_wait(&h, &c).how == KERNEL_RESTARTED);
    EXPECT(cell_wait(&h, &waits).how == KERNEL_RESTARTED && !waits.executing);
    call_done(&c);
    call_done(&waits);
    cell_open(&h, &c, id, "", 0, "import os\nprint('x' in globals(), os.environ['A'])");
    EXPECT(cell_wait(&h, &c).how == KERNEL_DONE);
    EXPECT_STR(c.events.buf, "1:\n");
    EXPECT_STR(c.out.buf, "False env\n");
    call_done(&c);

    open_forever(&h, &c, id, 0);
    cell_open(&h, &waits, id, "", 0, "print(1)");
    call_open(&h, &after, OP_KERNEL_EXECUTE, "ssUuu", id, "", (uint64_t)0, 0u, 0u);
    EXPECT(kernel_op(&h, OP_KERNEL_REMOVE, id) == 0);
    EXPECT(cell_wait(&h, &c).how == KERNEL_REMOVED);
    EXPECT(cell_wait(&h, &waits).how == KERNEL_REMOVED && !waits.executing);
    cell_send(&h, &after, "print(1)");
    EXPECT(host_wait(&h, &after.ended, AGENT_WAIT_MS) && after.status == ENOENT);
    call_done(&c);
    call_done(&waits);
    call_done(&after);
    EXPECT_STR(context_line(&h, id), "");
    EXPECT(host_runs_none(&h, "python3"));
    EXPECT(strstr(cell_story(&h, "1"), "kTtext=1")); /* a new default */
    host_stop(&h);
}

TEST(warm)
{
    struct agent_host h;
    struct call c;
    char id[KERNEL_ID_LEN + 1];

    host_start(&h);
    for (int i = 0; i < 2; i++) {
        CALL(&h, &c, OP_KERNEL_WARM, "sus", "python", 1u, i ? "A=second" : "A=first");
        EXPECT(c.status == 0);
        call_done(&c);
    }
    default_id(&h, "python", id);
    EXPECT(wait_state(&h, id, KERNEL_IDLE));
    EXPECT_STR(context_line(&h, id), "python /home/user 2 0 1");
    EXPECT_STR(cell_story(&h, "import os\nprint(os.environ['A'])"), "1first\n\n");
    host_stop(&h);
}

static int status_of(struct agent_host *h, enum chan_op op, const char *fmt, const char *a,
                     const char *b, char *ret_message, size_t size)
{
    struct call c;

    if (op == OP_KERNEL_EXECUTE)
        CALL(h, &c, op, fmt, a, b, (uint64_t)0, 0u, 0u);
    else
        CALL(h, &c, op, fmt, a, b);
    snprintf(ret_message, size, "%s", c.message);
    int status = c.status;
    call_done(&c);
    return status;
}

TEST(languages)
{
    struct agent_host h;
    struct call c;
    char m[512];

    host_start(&h);
    EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "klingon", "", m, sizeof(m)) == EINVAL);
    EXPECT(strncmp(m, "unknown language 'klingon': there are bash, ", 44) == 0);
    EXPECT(strstr(m, ", python") && !strstr(m, "mine"));
    EXPECT(status_of(&h, OP_KERNEL_EXECUTE, "ssUuu", "", "no\nsuch", m, sizeof(m)) == EINVAL);
    EXPECT(strstr(m, "'no?such'"));
    EXPECT(status_of(&h, OP_KERNEL_EXECUTE, "ssUuu", "", "..", m, sizeof(m)) == EINVAL);
    EXPECT(status_of(&h, OP_KERNEL_EXECUTE, "ssUuu", "", "a/b", m, sizeof(m)) == EINVAL);
    EXPECT(status_of(&h, OP_KERNEL_EXECUTE, "ssUuu", "some", "python", m, sizeof(m)) == EINVAL);
    shell_says(&h, "user",
               "d=~/.local/share/jupyter/kernels; mkdir -p $d/mine $d/none $d/python;"
               "echo {} > $d/mine/kernel.json; echo {} > $d/python/kernel.json");
    EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "klingon", "", m, sizeof(m)) == EINVAL);
    EXPECT(strstr(m, "mine") && !strstr(m, "none"));
    EXPECT(strstr(m, "python") && !strstr(strstr(m, "python") + 1, "python,"));
    EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "Mine", "", m, sizeof(m)) == 0);
    EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "none", "", m, sizeof(m)) == EINVAL);
    const char *all = contexts(&h), *mine = strstr(all, " mine /home/user 0 0 0\n");
    const char *javascript = strstr(all, " javascript /home/user 0 0 1\n");
    EXPECT(javascript && mine > javascript); /* the defaults come first */

    EXPECT(cell_in(&h, &c, "", "sh", "x=3; echo $((x + 1)); pwd") == KERNEL_DONE);
    EXPECT_STR(c.out.buf, "4\n/home/user\n");
    call_done(&c);
    EXPECT(strstr(contexts(&h), " bash /home/user 2 1 1\n"));
    EXPECT(cell_in(&h, &c, "", "js", "const a = 2; console.log(a); a + 1") == KERNEL_DONE);
    EXPECT_STR(c.story.buf, "12\n\nkRm\nkTtext=3\nkr\n");
    call_done(&c);
    EXPECT(cell_in(&h, &c, "", "ts", "let b: number = 4; b") == KERNEL_DONE);
    EXPECT_STR(c.story.buf, "kRm\nkTtext=4\nkr\n");
    call_done(&c);
    host_stop(&h);
}

TEST(a_kernel_that_cannot_start)
{
    struct agent_host h;
    struct call c;

    host_kernels = "/nowhere";
    host_start(&h);
    cell_open(&h, &c, "", "", 0, "1");
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == EIO && !c.executing);
    EXPECT(strncmp(c.message,
                   "cannot start the python kernel: it ended with status 2 before it was"
                   " ready: ",
                   75) == 0);
    EXPECT(strstr(c.message, "/nowhere/python"));
    call_done(&c);
    host_stop(&h);
    host_kernels = HOST_KERNELS;
}

TEST(bounds)
{
    struct agent_host h;
    struct call c, waits[66], other;
    char m[512];

    host_start(&h);
    open_forever(&h, &c, "", 0);
    for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
        cell_open(&h, &waits[i], "", "", 0, "1");
    EXPECT(host_wait(&h, &waits[64].ended, AGENT_WAIT_MS) && waits[64].status == EAGAIN);
    EXPECT(host_wait(&h, &waits[65].ended, AGENT_WAIT_MS) && waits[65].status == EAGAIN);
    EXPECT(!waits[63].ended);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &waits[63].ended, AGENT_WAIT_MS));
    EXPECT_STR(waits[63].events.buf, "65:\n");
    for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
        call_done(&waits[i]);
    call_done(&c);

    EXPECT(strlen(contexts(&h)) > 0); /* makes the other default */
    for (int i = 2; i < KERNELS_MAX; i++)
        EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "python", "", m, sizeof(m)) == 0);
    EXPECT(status_of(&h, OP_KERNEL_CREATE, "ss", "python", "", m, sizeof(m)) == EAGAIN);
    CALL(&h, &other, OP_KERNEL_LIST, "");
    EXPECT(other.status == 0 && other.entries == KERNELS_MAX);
    call_done(&other);

    CALL(&h, &other, OP_KERNEL_EXECUTE, "ssUusu", "", "", (uint64_t)0, 1u, "novalue", 0u);
    EXPECT(other.status == EINVAL);
    call_done(&other);
    CALL(&h, &other, OP_KERNEL_EXECUTE, "ssU", "", "", (uint64_t)0);
    EXPECT(other.status == EINVAL);
    call_done(&other);
    host_stop(&h);
}

TAP_MAIN
