/* File operations of the agent, seen from the host's end of the channel. */
#include "agent_files.h"

TEST(write_then_read)
{
    struct agent_host h;
    char text[256];

    host_start(&h);
    EXPECT(put(&h, "user", "hello.txt", 0640, 0, "hello") == 0);
    EXPECT(get(&h, "user", "/home/user/hello.txt", text, sizeof(text)) == 0);
    EXPECT_STR(text, "hello");
    EXPECT_STR(shell_says(&h, "root", "stat -c '%a %u %g' /home/user/hello.txt"),
               "640 1000 1000\n");
    EXPECT(put(&h, "root", "/root/r", 0600, 0, "") == 0);
    EXPECT(get(&h, "root", "r", text, sizeof(text)) == 0);
    EXPECT_STR(text, "");
    /* an existing file keeps its mode, and becomes the writer's */
    EXPECT(put(&h, "root", "/home/user/hello.txt", 0777, 0, "again") == 0);
    EXPECT_STR(shell_says(&h, "root",
                          "stat -c '%a %u %g' /home/user/hello.txt; cat /home/user/hello.txt; ls "
                          "-A /home/user | wc -l"),
               "640 0 0\nagain1\n");
    host_stop(&h);
}

TEST(large_file_whole)
{
    enum { SIZE = 5000000 };
    struct agent_host h;
    struct call c;
    bool never = false;
    char *data = malloc(SIZE);

    host_start(&h);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 % 253);
    call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "big", 0644u, 0u, 0u);
    for (size_t at = 0; at < SIZE && !c.ended;) {
        size_t n = chan_credit(c.stream);

        n = n < SIZE - at ? n : SIZE - at;
        n = n < FRAME_PAYLOAD_MAX ? n : FRAME_PAYLOAD_MAX;
        if (n > 0)
            chan_send(h.chan, c.stream, 0, data + at, n);
        at += n;
        host_wait(&h, &never, n > 0 ? 0 : 5);
    }
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == 0);
    call_done(&c);

    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "big", (uint64_t)0, (uint64_t)0);
    EXPECT(c.status == 0 && c.out.len == SIZE && memcmp(c.out.buf, data, SIZE) == 0);
    call_done(&c);
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "big", (uint64_t)4000000, (uint64_t)1000);
    EXPECT(c.status == 0 && c.out.len == 1000 && memcmp(c.out.buf, data + 4000000, 1000) == 0);
    call_done(&c);
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "big", (uint64_t)SIZE + 1, (uint64_t)0);
    EXPECT(c.status == 0 && c.out.len == 0);
    call_done(&c);
    /* a host that takes nothing: the agent waits, and answers others */
    call_open(&h, &c, OP_FILE_READ, "ssUU", "user", "big", (uint64_t)0, (uint64_t)0);
    c.hold = true;
    host_wait(&h, &never, 200);
    EXPECT(!c.ended && c.out.len == CHAN_WINDOW);
    EXPECT(put(&h, "user", "other", 0644, 0, "x") == 0);
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ECANCELED);
    call_done(&c);
    free(data);
    host_stop(&h);
}

TEST(all_or_nothing)
{
    struct agent_host h;
    struct call c;
    char text[64];
    bool never = false;

    host_start(&h);
    EXPECT(put(&h, "user", "f", 0644, 0, "old") == 0);
    call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "f", 0644u, 0u, 0u);
    chan_send(h.chan, c.stream, 0, "new", 3);
    host_wait(&h, &never, 50);
    EXPECT(get(&h, "user", "f", text, sizeof(text)) == 0);
    EXPECT_STR(text, "old");
    chan_cancel(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ECANCELED);
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "ls -A; cat f"), "f\nold");

    /* a disk that fills up: an error that says so, and no remains */
    call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "f", 0644u, 0u, 0u);
    static char chunk[FRAME_PAYLOAD_MAX];
    for (int i = 0; i < 70 * 16 && !c.ended; i++) {
        while (!c.ended && chan_credit(c.stream) < sizeof(chunk))
            host_wait(&h, &never, 1);
        if (!c.ended)
            chan_send(h.chan, c.stream, 0, chunk, sizeof(chunk));
    }
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    EXPECT(c.status == ENOSPC && strstr(c.message, "disk is full"));
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "ls -A; cat f"), "f\nold");
    host_stop(&h);
}

TEST(parents)
{
    struct agent_host h;

    host_start(&h);
    EXPECT(put(&h, "user", "a/b/c.txt", 0644, 0, "x") == ENOENT);
    EXPECT(put(&h, "user", "a/b/c.txt", 0644, FILE_PARENTS, "x") == 0);
    EXPECT_STR(shell_says(&h, "user", "stat -c '%n %a %u' a a/b"), "a 755 1000\na/b 755 1000\n");
    EXPECT(put(&h, "user", "/root/a/b", 0644, FILE_PARENTS, "x") == EACCES);
    EXPECT(make_dir(&h, "user", "a", 0) == EEXIST);
    EXPECT(make_dir(&h, "user", "a", FILE_PARENTS) == EEXIST);
    EXPECT(make_dir(&h, "user", "x/y/z", 0) == ENOENT);
    EXPECT(make_dir(&h, "user", "x/y/z", FILE_PARENTS) == 0);
    EXPECT_STR(shell_says(&h, "user", "stat -c '%a' x/y/z"), "750\n");
    EXPECT(make_dir(&h, "user", "a/b/c.txt", FILE_PARENTS) == ENOTDIR);
    shell_says(&h, "user", "ln -s a to_dir; ln -s a/b/c.txt to_file; ln -s nowhere dangling");
    EXPECT(make_dir(&h, "user", "to_dir", FILE_PARENTS) == EEXIST);
    EXPECT(make_dir(&h, "user", "to_file", 0) == ENOTDIR);
    EXPECT(make_dir(&h, "user", "dangling", 0) == ENOTDIR);
    EXPECT(make_dir(&h, "user", "a/b/c.txt/d", FILE_PARENTS) == ENOTDIR);
    EXPECT(make_dir(&h, "user", "/", 0) == EEXIST);
    host_stop(&h);
}

TEST(permissions_of_the_user)
{
    struct agent_host h;
    char text[64];

    host_start(&h);
    shell_says(&h, "root",
               "echo s > /root/secret; chmod 600 /root/secret; chmod 755 /root; "
               "echo s > /home/user/theirs; chmod 644 /home/user/theirs");
    EXPECT(get(&h, "user", "/root/secret", text, sizeof(text)) == EACCES);
    EXPECT(strstr(message, "cannot read '/root/secret': Permission denied"));
    EXPECT(get(&h, "root", "/root/secret", text, sizeof(text)) == 0);
    EXPECT(put(&h, "user", "/root/mine", 0644, 0, "x") == EACCES);
    EXPECT(put(&h, "user", "theirs", 0644, 0, "x") == EACCES); /* in a directory of mine */
    EXPECT(discard(&h, "user", "/root/secret", 0) == EACCES);
    EXPECT(rename_to(&h, "user", "/root/secret", "/home/user/s") == EACCES);
    EXPECT(make_dir(&h, "user", "/root/d", 0) == EACCES);
    shell_says(&h, "root", "chmod 700 /root");
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "/root", 1, 0) == EACCES);
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", "/root/secret", 0, 0) == EACCES);
    EXPECT(simple(&h, OP_FILE_WATCH, "ssu", "user", "/root", 0, 0) == EACCES);
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "no-one", "/", 0, 0) == EUSERS);
    EXPECT_STR(shell_says(&h, "root", "cat /root/secret; ls -A /root"), "s\nsecret\n");
    host_stop(&h);
}

TEST(special_files_answer_at_once)
{
    struct agent_host h;
    char text[64];

    host_start(&h);
    shell_says(&h, "user",
               "mkfifo fifo; mkdir dir; ln -s nowhere dangling; ln -s fifo tofifo; "
               "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"");
    EXPECT(get(&h, "user", "fifo", text, sizeof(text)) == EINVAL);
    EXPECT(strstr(message, "not a regular file"));
    EXPECT(get(&h, "user", "tofifo", text, sizeof(text)) == EINVAL);
    EXPECT(get(&h, "user", "sock", text, sizeof(text)) == EINVAL);
    EXPECT(get(&h, "user", "dir", text, sizeof(text)) == EISDIR);
    EXPECT(get(&h, "user", "/dev/zero", text, sizeof(text)) == EINVAL);
    EXPECT(get(&h, "user", "/dev/tty", text, sizeof(text)) != 0);
    EXPECT(get(&h, "user", "dangling", text, sizeof(text)) == ENOENT);
    EXPECT(put(&h, "user", "fifo", 0644, 0, "x") == EINVAL);
    EXPECT(put(&h, "user", "tofifo", 0644, 0, "x") == EINVAL);
    EXPECT(put(&h, "user", "sock", 0644, 0, "x") == EINVAL);
    EXPECT(put(&h, "user", "dir", 0644, 0, "x") == EISDIR);
    EXPECT(put(&h, "user", "dir/", 0644, 0, "x") == EISDIR);
    EXPECT(put(&h, "root", "/dev/null", 0644, 0, "x") == EINVAL);
    EXPECT(put(&h, "user", "dangling", 0644, 0, "x") == 0);
    EXPECT_STR(shell_says(&h, "user", "cat nowhere; readlink dangling"), "xnowhere\n");
    shell_says(&h, "user", "ln -s none/file dangling2");
    EXPECT(put(&h, "user", "dangling2", 0644, FILE_PARENTS, "x") == ENOENT);
    EXPECT(get(&h, "user", "/proc/cpuinfo", text, sizeof(text)) == 0 && strstr(text, "processor"));
    host_stop(&h);
}

TEST(links_lead_nowhere_else)
{
    static const char *const paths[] = {
        "/proc/self/maps",
        "/proc/1/maps",
        "/proc/1/environ",
        "/proc/thread-self/maps",
        "/proc/1/root/etc/passwd",
        "/proc/self/fd/3",
        "/proc/1/exe",
        "maps",
        "fd",
        "rootlink/etc/passwd",
        "/proc/1/mem",
        "/proc/1/task/1/maps",
    };
    static const char *const users[] = {"user", "root"};
    struct agent_host h;
    char text[256];

    host_start(&h);
    shell_says(&h, "user",
               "ln -s /proc/self/maps maps; ln -s /proc/self/fd/3 fd; "
               "ln -s /proc/1/root rootlink; ln -s /proc/self/fd fds; echo t > target; "
               "ln -s target one; ln -s one two; ln -s loop loop; ln -s /home/user abs; "
               "mkdir d; echo up > d/x; ln -s ../../../../../home/user/d/x climb");
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        for (size_t u = 0; u < 2; u++) {
            char path[128];

            snprintf(path, sizeof(path), "%s%s", paths[i][0] == '/' ? "" : "/home/user/", paths[i]);
            int status = get(&h, users[u], path, text, sizeof(text));
            EXPECT(status == EACCES || status == ELOOP);
            if (status != EACCES && status != ELOOP)
                printf("# %s as %s: %d %s\n", path, users[u], status, message);
            EXPECT(put(&h, users[u], path, 0644, FILE_PARENTS, "x") != 0);
            if (paths[i][0] == '/')
                EXPECT(discard(&h, users[u], path, FILE_RECURSIVE) != 0);
        }
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "root", "/home/user/fds", 1, 0) == EACCES);
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "root", "/proc/1", 1, 0) == EACCES);
    EXPECT(simple(&h, OP_FILE_WATCH, "ssu", "root", "/proc/1/fd", 0, 0) == EACCES);

    /* writing goes through ordinary links, and leaves them */
    EXPECT(put(&h, "user", "two", 0644, 0, "through") == 0);
    EXPECT_STR(shell_says(&h, "user", "cat target; readlink one two"), "throughtarget\none\n");
    EXPECT(put(&h, "user", "loop", 0644, 0, "x") == ELOOP);
    EXPECT(put(&h, "user", "abs/target", 0644, 0, "abs") == 0);
    EXPECT(get(&h, "user", "climb", text, sizeof(text)) == 0);
    EXPECT_STR(text, "up\n");
    EXPECT(discard(&h, "user", "two", FILE_RECURSIVE) == 0);
    EXPECT(discard(&h, "user", "abs", FILE_RECURSIVE) == 0);
    EXPECT_STR(shell_says(&h, "user", "cat target; ls -A | grep -c -e two -e abs || true"),
               "abs0\n");
    host_stop(&h);
}

TEST(list_to_a_depth)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "mkdir -p t/a/b/c; touch t/1 t/a/2 t/a/b/3; ln -s a t/link");
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t/", 1u);
    EXPECT(c.status == 0 && c.entries == 3);
    EXPECT(strstr(c.events.buf, "/home/user/t/link\n") && !strstr(c.events.buf, "/2\n"));
    call_done(&c);
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t", 2u);
    EXPECT(c.entries == 5 && strstr(c.events.buf, "/home/user/t/a/2\n"));
    call_done(&c);
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t", 100u);
    EXPECT(c.entries == 7 && strstr(c.events.buf, "/home/user/t/a/b/3\n"));
    EXPECT(!strstr(c.events.buf, "link/"));
    call_done(&c);
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "t/1", 1, 0) == ENOTDIR);
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "t", 0, 0) == EINVAL);
    host_stop(&h);
}

TEST(trees_without_measure)
{
    static const char deep[] = "python3 -c \"\nimport os\nfor i in range(20000):\n os.mkdir('d')\n"
                               " os.chdir('d')\nopen('f','w')\"";
    struct agent_host h;

    host_start(&h);
    shell_says(&h, "user", deep);
    shell_says(&h, "user",
               "mkdir w && cd w && for i in {1..10}; do mkdir $i; "
               "(cd $i; seq 10001 | xargs touch); done");
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "w", 2, 0) == E2BIG);
    EXPECT(strstr(message, "more than 100000 entries"));
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "d", UINT32_MAX, 0) == ENAMETOOLONG);
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "user", "d", 100, 0) == 0);
    EXPECT(discard(&h, "user", "d", 0) == ENOTEMPTY);
    EXPECT(discard(&h, "user", "d", FILE_RECURSIVE) == 0);
    EXPECT(discard(&h, "user", "w", FILE_RECURSIVE) == 0);
    EXPECT_STR(shell_says(&h, "user", "ls -A"), "");
    host_stop(&h);
}

TEST(remove_stays_in_its_tree)
{
    struct agent_host h;
    struct call race;

    host_start(&h);
    shell_says(&h, "user",
               "mkdir -p keep/k t/a/b; echo k > keep/k/f; ln -s ../keep t/link; "
               "ln -s ../../keep t/a/link; ln t/a/b/x t/y 2>/dev/null; true");
    EXPECT(discard(&h, "user", "t", FILE_RECURSIVE) == 0);
    EXPECT_STR(shell_says(&h, "user", "cat keep/k/f; ls"), "k\nkeep\n");
    EXPECT(discard(&h, "user", "t", FILE_RECURSIVE) == ENOENT);
    EXPECT(discard(&h, "root", "/", FILE_RECURSIVE) == EBUSY);
    EXPECT(discard(&h, "root", "/proc", FILE_RECURSIVE) != 0);

    /* directories change places with links out of the tree while it is removed */
    shell_open(&h, &race, "user", 0,
               "exec python3 -c \"\nimport os\nwhile True:\n"
               " try:\n  os.makedirs('r/x/y/z', exist_ok=True)\n"
               "  os.rename('r/x', 'r/moved'); os.symlink('/home/user/keep', 'r/x')\n"
               "  os.unlink('r/x'); os.rename('r/moved', 'r/x'); os.rename('r/x/y', 'y'); "
               "os.rename('y', 'r/x/y')\n"
               " except OSError: pass\n\"");
    EXPECT(host_wait(&h, &race.started, AGENT_WAIT_MS));
    for (int i = 0; i < 300; i++)
        discard(&h, "user", "r", FILE_RECURSIVE);
    chan_cancel(h.chan, race.stream);
    EXPECT(host_wait(&h, &race.ended, AGENT_WAIT_MS));
    call_done(&race);
    EXPECT_STR(shell_says(&h, "user", "cat keep/k/f"), "k\n");
    host_stop(&h);
}

TEST(move)
{
    struct agent_host h;
    char text[64];

    host_start(&h);
    shell_says(&h, "user", "echo 1 > a; echo 2 > b; mkdir d e; touch e/full; chmod 640 a");
    EXPECT(rename_to(&h, "user", "a", "b") == 0);
    EXPECT(get(&h, "user", "b", text, sizeof(text)) == 0);
    EXPECT_STR(text, "1\n");
    EXPECT(rename_to(&h, "user", "a", "c") == ENOENT);
    EXPECT(rename_to(&h, "user", "d", "e") == ENOTEMPTY);
    EXPECT(rename_to(&h, "user", "d", "d/inside") == EINVAL);
    EXPECT(rename_to(&h, "user", "d", "f") == 0);
    /* /tmp is another file system here */
    EXPECT(rename_to(&h, "user", "b", "/tmp/b") == 0);
    EXPECT_STR(shell_says(&h, "user", "stat -c %a /tmp/b; cat /tmp/b; ls"), "640\n1\ne\nf\n");
    shell_says(&h, "user", "mkdir -p e/sub; echo deep > e/sub/f; ln -s sub e/link; chmod 700 e");
    EXPECT(rename_to(&h, "user", "e", "/tmp/e") == 0);
    EXPECT_STR(shell_says(&h, "user", "stat -c %a /tmp/e; cat /tmp/e/link/f; ls"),
               "700\ndeep\nf\n");
    EXPECT(rename_to(&h, "user", "/tmp/e", "none/e") == ENOENT);
    shell_says(&h, "user", "mkdir -p full/x; ln -s nowhere /tmp/link");
    EXPECT(rename_to(&h, "user", "/tmp/e", "full") == EXDEV); /* not into what is there */
    EXPECT(strstr(message, "moving it takes a copy, which failed"));
    EXPECT(rename_to(&h, "user", "/tmp/link", "link") == 0);
    EXPECT_STR(shell_says(&h, "user", "readlink link; ls full"), "nowhere\nx\n");
    host_stop(&h);
}

TEST(for_a_user_with_the_rights_of_root)
{
    struct agent_host h;
    char text[64];

    host_start(&h);
    shell_says(&h, "root",
               "mkdir -m 700 /root/closed; echo secret > /root/closed/f; chmod 600 /root/closed/f; "
               "echo roots > /home/user/roots; mkdir /tmp/roots; chmod 755 /tmp/roots");
    EXPECT(get(&h, "user", "/root/closed/f", text, sizeof(text)) == EACCES);
    EXPECT(get(&h, "+user", "/root/closed/f", text, sizeof(text)) == 0);
    EXPECT_STR(text, "secret\n");
    EXPECT(simple(&h, OP_FILE_LIST, "ssu", "+user", "/root/closed", 1, 0) == 0);
    EXPECT(put(&h, "user", "/tmp/roots/a/b", 0644, FILE_PARENTS, "x") == EACCES);
    EXPECT(put(&h, "+user", "/tmp/roots/a/b", 0644, FILE_PARENTS | FILE_IN_PLACE, "x") == 0);
    EXPECT(make_dir(&h, "+user", "/tmp/roots/d", 0) == 0);
    EXPECT(put(&h, "+user", "roots", 0644, FILE_IN_PLACE, "now mine") == 0);
    EXPECT_STR(shell_says(&h, "root",
                          "cd /tmp/roots; stat -c '%u %a %n' . a a/b d /home/user/roots; "
                          "cat /home/user/roots"),
               "0 755 .\n1000 755 a\n1000 644 a/b\n1000 750 d\n1000 644 /home/user/roots\n"
               "now mine");
    EXPECT(rename_to(&h, "+user", "/tmp/roots/d", "/root/closed/d") == 0); /* by mv */
    EXPECT(discard(&h, "+user", "/root/closed", FILE_RECURSIVE) == 0);
    EXPECT_STR(shell_says(&h, "root", "ls /root /tmp/roots"), "/root:\n\n/tmp/roots:\na\n");
    /* no way to the agent, and none to be more than a user */
    EXPECT(get(&h, "+user", "/proc/1/environ", text, sizeof(text)) == EACCES);
    EXPECT(get(&h, "+nobody-here", "f", text, sizeof(text)) == EUSERS);
    EXPECT(get(&h, "++user", "f", text, sizeof(text)) == EUSERS);
    EXPECT(simple(&h, OP_USER, "ss", "+user", "", 0, 0) == EINVAL);
    host_stop(&h);
}

TEST(written_in_place)
{
    struct agent_host h;

    host_start(&h);
    shell_says(&h, "user",
               "echo old and longer > f; chmod 751 f; ln f hard; ln -s f soft; mkfifo fifo");
    EXPECT(put(&h, "user", "soft", 0644, FILE_IN_PLACE, "new") == 0);
    EXPECT_STR(shell_says(&h, "user", "cat hard; stat -c ' %a %h' f; readlink soft"),
               "new 751 2\nf\n");
    EXPECT(put(&h, "user", "f", 0644, 0, "other") == 0);
    EXPECT_STR(shell_says(&h, "user", "cat hard; stat -c ' %h' f"), "new 1\n");
    EXPECT(put(&h, "user", "fifo", 0644, FILE_IN_PLACE, "x") == EINVAL);
    EXPECT(put(&h, "user", "/tmp", 0644, FILE_IN_PLACE, "x") == EISDIR);
    EXPECT(put(&h, "user", "/etc/passwd", 0644, FILE_IN_PLACE, "x") == EACCES);
    EXPECT_STR(shell_says(&h, "user", "ls -A"), "f\nfifo\nhard\nsoft\n");

    /* given up: a new file goes, one that was there stays, with what was written */
    struct call c;
    for (unsigned i = 0; i < 2; i++) {
        call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", i ? "f" : "new", 0644, FILE_IN_PLACE, 0u);
        chan_send(h.chan, c.stream, 0, "part", 4);
        chan_cancel(h.chan, c.stream);
        EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
        call_done(&c);
    }
    EXPECT_STR(shell_says(&h, "user", "ls -A; cat f"), "f\nfifo\nhard\nsoft\npart");
    host_stop(&h);
}

TEST(one_file_of_several)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "echo a > a; echo b > b; ln -s b link; mkfifo fifo; mkdir d");
    CALL(&h, &c, OP_FILE_COMPOSE, "ssuuuss", "user", "new/ab", 0640u, FILE_PARENTS, 2u, "a",
         "link");
    EXPECT_STR(call_entry(&c).path, "/home/user/new/ab");
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "cat new/ab; stat -c %a new/ab; ls"),
               "a\nb\n640\nb\nd\nfifo\nnew\n");
    CALL(&h, &c, OP_FILE_COMPOSE, "ssuuuss", "user", "x", 0640u, 0u, 2u, "b", "fifo");
    EXPECT(c.status == EINVAL);
    call_done(&c);
    CALL(&h, &c, OP_FILE_COMPOSE, "ssuuuss", "user", "x", 0640u, 0u, 2u, "b", "gone");
    EXPECT(c.status == ENOENT && strstr(c.message, "gone"));
    call_done(&c);
    CALL(&h, &c, OP_FILE_COMPOSE, "ssuuu", "user", "x", 0640u, 0u, 0u);
    EXPECT(c.status == EINVAL);
    call_done(&c);
    CALL(&h, &c, OP_FILE_COMPOSE, "ssuuus", "user", "x", 0640u, 0u, 2u, "b");
    EXPECT(c.status != 0);
    call_done(&c);
    EXPECT_STR(shell_says(&h, "user", "ls -A; cat b"), "b\nd\nfifo\nnew\nb\n");
    host_stop(&h);
}

TEST(requests_that_make_no_sense)
{
    struct agent_host h;
    char path[OPS_PATH_MAX];

    host_start(&h);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    for (uint32_t op = OP_FILE_READ; op <= OP_FILE_WATCH; op++)
        EXPECT(simple(&h, (enum chan_op)op, "s", "user", "", 0, 0) != 0);
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", path, 0, 0) == ENAMETOOLONG);
    EXPECT(simple(&h, (enum chan_op)200, "s", "user", "", 0, 0) == ENOSYS);
    EXPECT(simple(&h, OP_PING, "", "", "", 0, 0) == 0);
    host_stop(&h);
}

TAP_MAIN
