/* Watches on directories, seen from the host's end of the channel. */
#include "agent_files.h"

/* Waits until the watch has said `what`. */
static bool saw(struct agent_host *h, struct call *c, const char *what)
{
    for (int i = 0; i < 200 && !strstr(c->events.buf, what); i++)
        host_wait(h, &c->ended, 10);
    if (!strstr(c->events.buf, what))
        printf("# no '%s' in: %s\n", what, c->events.buf);
    return strstr(c->events.buf, what) != NULL;
}

static void watch(struct agent_host *h, struct call *c, const char *path, uint32_t flags)
{
    call_open(h, c, OP_FILE_WATCH, "ssu", "user", path, flags);
    EXPECT(host_wait(h, &c->watching, AGENT_WAIT_MS));
}

static void unwatch(struct agent_host *h, struct call *c)
{
    chan_cancel(h->chan, c->stream);
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS) && c->status == ECANCELED);
    call_done(c);
}

/* Everything up to a directory that is made last. */
static const char *events_until_mark(struct agent_host *h, struct call *c)
{
    shell_says(h, "user", "mkdir w/mark");
    EXPECT(saw(h, c, "1:mark"));
    shell_says(h, "user", "rmdir w/mark");
    EXPECT(saw(h, c, "3:mark"));
    return c->events.buf;
}

TEST(changes_of_programs)
{
    struct agent_host h;
    struct call c, flat;

    host_start(&h);
    shell_says(&h, "user", "mkdir -p w/sub; touch w/old");
    call_open(&h, &c, OP_FILE_WATCH, "ssu", "user", "w", FILE_RECURSIVE);
    EXPECT(host_wait(&h, &c.watching, AGENT_WAIT_MS));
    call_open(&h, &flat, OP_FILE_WATCH, "ssu", "user", "w", 0u);
    EXPECT(host_wait(&h, &flat.watching, AGENT_WAIT_MS));
    shell_says(&h, "user",
               "cd w; echo x > new; chmod 600 old; mv old older; rm new; "
               "echo y > sub/deep; mkdir -p n/m; sleep 0.2; echo z > n/m/f; "
               "mv n gone; sleep 0.1; echo v > gone/m/g");
    EXPECT(saw(&h, &c, "1:new\n"));
    EXPECT(saw(&h, &c, "2:new\n"));
    EXPECT(saw(&h, &c, "5:old\n"));
    EXPECT(saw(&h, &c, "4:old\n"));
    EXPECT(saw(&h, &c, "1:older\n"));
    EXPECT(saw(&h, &c, "3:new\n"));
    EXPECT(saw(&h, &c, "2:sub/deep\n"));
    EXPECT(saw(&h, &c, "1:n/m\n"));
    EXPECT(saw(&h, &c, "2:n/m/f\n"));
    EXPECT(saw(&h, &c, "2:gone/m/g\n"));
    EXPECT(saw(&h, &flat, "1:gone\n"));
    EXPECT(!strstr(flat.events.buf, "deep"));
    unwatch(&h, &c);
    shell_says(&h, "user", "rm -r w");
    EXPECT(saw(&h, &flat, "3:\n"));
    unwatch(&h, &flat);

    EXPECT(simple(&h, OP_FILE_WATCH, "ssu", "user", "none", 0, 0) == ENOENT);
    shell_says(&h, "user", "touch f; mkdir many; cd many; seq 5000 | xargs mkdir");
    EXPECT(simple(&h, OP_FILE_WATCH, "ssu", "user", "f", 0, 0) == ENOTDIR);
    EXPECT(simple(&h, OP_FILE_WATCH, "ssu", "user", "many", FILE_RECURSIVE, 0) == E2BIG);
    EXPECT(strstr(message, "more than 4096 directories"));
    host_stop(&h);
}

TEST(writes_of_the_host)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "mkdir w");
    watch(&h, &c, "w", 0);
    EXPECT(put(&h, "user", "w/f", 0644, 0, "new") == 0);
    EXPECT(put(&h, "user", "w/f", 0644, 0, "again") == 0);
    EXPECT(put(&h, "user", "w/empty", 0644, 0, "") == 0);
    EXPECT_STR(events_until_mark(&h, &c), "1:f\n2:f\n2:f\n1:empty\n2:empty\n1:mark\n3:mark\n");
    unwatch(&h, &c);

    /* one that is given up leaves no trace */
    watch(&h, &c, "w", FILE_RECURSIVE);
    struct call half;
    call_open(&h, &half, OP_FILE_WRITE, "ssuuu", "user", "w/half", 0644u, 0u, 0u);
    chan_send(h.chan, half.stream, 0, "x", 1);
    chan_cancel(h.chan, half.stream);
    EXPECT(host_wait(&h, &half.ended, AGENT_WAIT_MS));
    call_done(&half);
    EXPECT_STR(events_until_mark(&h, &c), "1:mark\n3:mark\n");
    unwatch(&h, &c);
    host_stop(&h);
}

TEST(rename_and_remove_of_the_host)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "mkdir -p w/sub; touch w/a");
    watch(&h, &c, "w", 0);
    EXPECT(rename_to(&h, "user", "w/a", "w/b") == 0);
    EXPECT(make_dir(&h, "user", "w/dir", 0) == 0);
    EXPECT(discard(&h, "user", "w/b", 0) == 0);
    EXPECT_STR(events_until_mark(&h, &c), "4:a\n1:b\n1:dir\n3:b\n1:mark\n3:mark\n");
    unwatch(&h, &c);
    host_stop(&h);
}

/* Each file of a tree that appears at once is told, whenever the watch gets there. */
TEST(trees_that_appear)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "mkdir w");
    watch(&h, &c, "w", FILE_RECURSIVE);
    shell_says(&h, "user", "mkdir -p w/a/b/c; touch w/a/1 w/a/b/2 w/a/b/c/3");
    EXPECT(put(&h, "user", "w/x/y/f", 0644, FILE_PARENTS, "deep") == 0);
    EXPECT(saw(&h, &c, "1:a\n") && saw(&h, &c, "1:a/b\n") && saw(&h, &c, "1:a/b/c\n"));
    EXPECT(saw(&h, &c, "1:a/1\n") && saw(&h, &c, "1:a/b/2\n") && saw(&h, &c, "1:a/b/c/3\n"));
    EXPECT(saw(&h, &c, "1:x/y/f\n"));
    EXPECT(!strstr(c.events.buf, ".part") && !strstr(c.events.buf, ".over"));
    /* and what happens in it later */
    EXPECT(put(&h, "user", "w/x/y/f", 0644, 0, "more") == 0);
    EXPECT(saw(&h, &c, "2:x/y/f\n"));
    unwatch(&h, &c);
    host_stop(&h);
}

TEST(changes_with_their_entry)
{
    struct agent_host h;
    struct call c;
    struct wire_reader r;

    host_start(&h);
    shell_says(&h, "user", "mkdir -p w/sub; mkdir w/sub/deep");
    watch(&h, &c, "w/", FILE_RECURSIVE | FILE_ENTRIES);
    EXPECT(put(&h, "user", "w/sub/f", 0640, 0, "12345") == 0);
    EXPECT(saw(&h, &c, "1:sub/f+\n") && saw(&h, &c, "2:sub/f+\n"));
    wire_reader_init(&r, c.entry.buf, c.entry.len);
    struct entry_view v = entry_read(&r);
    EXPECT(wire_done(&r));
    EXPECT_STR(v.name, "f");
    EXPECT_STR(v.path, "/home/user/w/sub/f");
    EXPECT(v.type == ENTRY_FILE && v.mode == 0640 && v.size == 5);
    shell_says(&h, "user", "chmod 600 w/sub/f; mv w/sub/f w/sub/g");
    EXPECT(saw(&h, &c, "5:sub/f"));
    EXPECT(saw(&h, &c, "4:sub/f-\n"));
    EXPECT(saw(&h, &c, "1:sub/g+\n"));
    shell_says(&h, "user", "rm w/sub/g; mkdir w/n; touch w/n/x");
    EXPECT(saw(&h, &c, "3:sub/g-\n"));
    EXPECT(saw(&h, &c, "1:n+\n"));
    EXPECT(saw(&h, &c, "1:n/x+\n"));
    unwatch(&h, &c);
    host_stop(&h);
}

/* Many files and few directories: only the directories cost anything. */
TEST(large_directories)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "mkdir -p w/d; cd w/d; seq 60000 | xargs touch");
    watch(&h, &c, "w", FILE_RECURSIVE);
    EXPECT(c.events.len == 0);
    shell_says(&h, "user", "echo x > w/d/30000");
    EXPECT(saw(&h, &c, "2:d/30000\n"));
    unwatch(&h, &c);
    host_stop(&h);
}

TAP_MAIN
