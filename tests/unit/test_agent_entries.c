/* Entries of files and their metadata. */
#include "agent_files.h"

static struct entry_view stat_of(struct agent_host *h, struct call *c, const char *path)
{
    CALL(h, c, OP_FILE_STAT, "ss", "user", path);
    return call_entry(c);
}

TEST(stat_says_what_ls_says)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user", "printf 12345 > f; chmod 4640 f; touch -d @1000000000.5 f");
    CALL(&h, &c, OP_FILE_STAT, "ss", "root", "/home/user/f");
    struct entry_view v = call_entry(&c);
    EXPECT_STR(v.name, "f");
    EXPECT_STR(v.path, "/home/user/f");
    EXPECT(v.type == ENTRY_FILE && v.mode == 04640 && v.uid == 1000 && v.gid == 1000);
    EXPECT_STR(v.owner, "user");
    EXPECT_STR(v.group, "user");
    EXPECT(v.size == 5 && v.mtime_ns == 1000000000500000000u);
    EXPECT_STR(v.link, "");
    EXPECT_STR(v.target_path, "");
    EXPECT(v.target_type == ENTRY_OTHER && v.target_mode == 0 && v.target_size == 0);
    EXPECT(v.n_meta == 0);
    call_done(&c);
    v = stat_of(&h, &c, "/");
    EXPECT(v.type == ENTRY_DIR);
    EXPECT_STR(v.path, "/");
    call_done(&c);
    v = stat_of(&h, &c, "/home/user/.");
    EXPECT(v.type == ENTRY_DIR);
    call_done(&c);
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", "none", 0, 0) == ENOENT);
    EXPECT_STR(message, "cannot stat '/home/user/none': No such file or directory");
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", "f/x", 0, 0) == ENOTDIR);
    host_stop(&h);
}

TEST(links_and_where_they_lead)
{
    static const struct {
        const char *name, *link, *target;
        uint32_t type;
    } cases[] = {
        {"rel", "d/file", "/home/user/d/file", ENTRY_FILE},
        {"abs", "/home/user/d", "/home/user/d", ENTRY_DIR},
        {"twice", "rel", "/home/user/d/file", ENTRY_FILE},
        {"through", "abs/../d/file", "/home/user/d/file", ENTRY_FILE},
        {"dangling", "no/where", "", ENTRY_OTHER},
        {"loop", "loop", "", ENTRY_OTHER},
        {"magic", "/proc/self/exe", "", ENTRY_OTHER},
        {"closed", "/root/secret/x", "", ENTRY_OTHER},
    };
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "root", "mkdir /root/secret; touch /root/secret/x; chmod 700 /root/secret");
    shell_says(&h, "user",
               "mkdir d; printf 123 > d/file; chmod 640 d/file; ln -s d/file rel; "
               "ln -s /home/user/d abs; ln -s rel twice; ln -s abs/../d/file through; "
               "ln -s no/where dangling; ln -s loop loop; ln -s /proc/self/exe magic; "
               "ln -s /root/secret/x closed");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct entry_view v = stat_of(&h, &c, cases[i].name);

        EXPECT(v.type == ENTRY_SYMLINK);
        EXPECT_STR(v.link, cases[i].link);
        EXPECT_STR(v.target_path, cases[i].target);
        EXPECT(v.target_type == cases[i].type);
        if (v.target_type == ENTRY_FILE)
            EXPECT(v.target_mode == 0640 && v.target_size == 3);
        call_done(&c);
    }
    struct entry_view v = stat_of(&h, &c, "rel//"); /* the link, however it is spelled */
    EXPECT(v.type == ENTRY_SYMLINK);
    EXPECT_STR(v.path, "/home/user/rel");
    call_done(&c);
    host_stop(&h);
}

TEST(results_are_entries)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    call_open(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "a/b", 0600u, FILE_PARENTS, 0u);
    chan_send(h.chan, c.stream, 0, "four", 4);
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    struct entry_view v = call_entry(&c);
    EXPECT_STR(v.path, "/home/user/a/b");
    EXPECT(v.type == ENTRY_FILE && v.size == 4 && v.mode == 0600 && v.uid == 1000);
    call_done(&c);

    CALL(&h, &c, OP_FILE_MKDIR, "ssuu", "user", "m/n/", 0750u, FILE_PARENTS);
    v = call_entry(&c);
    EXPECT_STR(v.path, "/home/user/m/n");
    EXPECT_STR(v.name, "n");
    EXPECT(v.type == ENTRY_DIR && v.mode == 0750 && v.uid == 1000);
    call_done(&c);

    CALL(&h, &c, OP_FILE_MOVE, "sssu", "user", "a/b", "x/y/z", 0u);
    EXPECT(c.status == ENOENT);
    call_done(&c);
    CALL(&h, &c, OP_FILE_MOVE, "sssu", "user", "none", "q/r", FILE_PARENTS);
    EXPECT(c.status == ENOENT);
    call_done(&c);
    EXPECT(simple(&h, OP_FILE_STAT, "ss", "user", "q", 0, 0) == ENOENT); /* no traces */
    CALL(&h, &c, OP_FILE_MOVE, "sssu", "user", "a/b", "x/y/z", FILE_PARENTS);
    v = call_entry(&c);
    EXPECT_STR(v.path, "/home/user/x/y/z");
    EXPECT(v.size == 4);
    call_done(&c);
    host_stop(&h);
}

/* The entry comes first, and tells how much is to come. */
TEST(reading_begins_with_the_entry)
{
    struct agent_host h;
    struct call c;
    struct wire_reader r;

    host_start(&h);
    shell_says(&h, "user", "seq 1000 > f; ln -s f l; touch empty");
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "l", (uint64_t)10, (uint64_t)0);
    EXPECT(c.status == 0 && c.entries == 1);
    wire_reader_init(&r, c.entry.buf, c.entry.len);
    struct entry_view v = entry_read(&r);
    EXPECT_STR(v.path, "/home/user/l");
    EXPECT(v.type == ENTRY_FILE && v.size == 3893 && c.out.len == v.size - 10);
    call_done(&c);
    /* files of /proc claim to be empty, and are not */
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "/proc/cpuinfo", (uint64_t)0, (uint64_t)0);
    wire_reader_init(&r, c.entry.buf, c.entry.len);
    v = entry_read(&r);
    EXPECT(c.status == 0 && v.size > 100 && c.out.len == v.size);
    call_done(&c);
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "/proc/cpuinfo", (uint64_t)2, (uint64_t)5);
    EXPECT_STR(c.out.buf, "ocess");
    call_done(&c);
    CALL(&h, &c, OP_FILE_READ, "ssUU", "user", "empty", (uint64_t)0, (uint64_t)0);
    EXPECT(c.status == 0 && c.entries == 1 && c.out.len == 0);
    call_done(&c);
    /* one that shrinks meanwhile cannot keep its word */
    shell_says(&h, "user", "head -c 3000000 /dev/zero > shrinks");
    call_open(&h, &c, OP_FILE_READ, "ssUU", "user", "shrinks", (uint64_t)0, (uint64_t)0);
    c.hold = true;
    while (!c.ended && c.out.len < CHAN_WINDOW)
        host_wait(&h, &c.ended, 10);
    shell_says(&h, "user", "truncate -s 100 shrinks");
    c.hold = false;
    chan_consumed(h.chan, c.stream, c.held);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS) && c.status == ESTALE);
    call_done(&c);
    host_stop(&h);
}

TEST(lists_are_in_order)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    shell_says(&h, "user",
               "mkdir -p t/b/y t/a.d t/a; touch t/b/x t/b/y/1 t/b/z t/a/q t/a.d/k t/c t/B; "
               "ln -s b t/link");
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t", 9u);
    EXPECT_STR(c.events.buf, "/home/user/t/B\n/home/user/t/a\n/home/user/t/a/q\n"
                             "/home/user/t/a.d\n/home/user/t/a.d/k\n/home/user/t/b\n"
                             "/home/user/t/b/x\n/home/user/t/b/y\n/home/user/t/b/y/1\n"
                             "/home/user/t/b/z\n/home/user/t/c\n/home/user/t/link\n");
    call_done(&c);
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t/link", 1u); /* told under the name asked for */
    EXPECT_STR(c.events.buf, "/home/user/t/link/x\n/home/user/t/link/y\n/home/user/t/link/z\n");
    call_done(&c);
    /* a directory that cannot be read is listed, and what is in it is not */
    shell_says(&h, "user", "chmod 0 t/b");
    CALL(&h, &c, OP_FILE_LIST, "ssu", "user", "t", 9u);
    EXPECT(c.status == 0 && strstr(c.events.buf, "t/b\n/home/user/t/c\n"));
    call_done(&c);
    host_stop(&h);
}

static int put_meta(struct agent_host *h, struct call *c, const char *path, const char *key,
                    const char *value)
{
    call_open(h, c, OP_FILE_WRITE, "ssuuuss", "user", path, 0644u, 0u, 1u, key, value);
    if (c->stream)
        chan_eof(h->chan, c->stream);
    EXPECT(host_wait(h, &c->ended, AGENT_WAIT_MS));
    return c->status;
}

#define XATTR "python3 -c \"import os,sys; "

TEST(metadata)
{
    struct agent_host h;
    struct call c;

    host_start(&h);
    call_open(&h, &c, OP_FILE_WRITE, "ssuuussss", "user", "f", 0644u, 0u, 2u, "author", "me & you",
              "empty", "");
    chan_eof(h.chan, c.stream);
    EXPECT(host_wait(&h, &c.ended, AGENT_WAIT_MS));
    struct entry_view v = call_entry(&c);
    EXPECT(v.n_meta == 2);
    EXPECT_STR(entry_meta(&v, "author"), "me & you");
    EXPECT_STR(entry_meta(&v, "empty"), "");
    call_done(&c);
    /* programs inside see them, and can add to them; others' attributes are not ours */
    EXPECT_STR(shell_says(&h, "user", XATTR "print(os.getxattr('f','user.e2b.author'))\""),
               "b'me & you'\n");
    shell_says(&h, "user",
               XATTR "os.setxattr('f','user.e2b.inside',b'yes'); "
                     "os.setxattr('f','user.other',b'no'); "
                     "os.setxattr('f','user.e2b.binary',b'a\\0b')\"");
    EXPECT(rename_to(&h, "user", "f", "g") == 0);
    v = stat_of(&h, &c, "g");
    EXPECT(v.n_meta == 3);
    EXPECT_STR(entry_meta(&v, "inside"), "yes");
    call_done(&c);
    /* to another file system, where a copy is made */
    EXPECT(rename_to(&h, "user", "g", "/tmp/g") == 0);
    v = stat_of(&h, &c, "/tmp/g");
    EXPECT(v.n_meta == 3);
    EXPECT_STR(entry_meta(&v, "author"), "me & you");
    call_done(&c);
    /* through a link it is that of the target */
    shell_says(&h, "user", "ln -s /tmp/g l");
    v = stat_of(&h, &c, "l");
    EXPECT_STR(entry_meta(&v, "inside"), "yes");
    call_done(&c);
    /* a new upload replaces all */
    EXPECT(put_meta(&h, &c, "/tmp/g", "new", "1") == 0);
    v = call_entry(&c);
    EXPECT(v.n_meta == 1);
    EXPECT_STR(entry_meta(&v, "new"), "1");
    call_done(&c);
    EXPECT(put(&h, "user", "/tmp/g", 0644, 0, "x") == 0);
    v = stat_of(&h, &c, "/tmp/g");
    EXPECT(v.n_meta == 0);
    call_done(&c);
    host_stop(&h);
}

/* What others made of them must not make an entry grow, nor tell what may not be read. */
TEST(metadata_is_bounded)
{
    static char long_key[FILE_META_KEY_MAX + 2], long_value[FILE_META_MAX + 1];
    struct agent_host h;
    struct call c;

    host_start(&h);
    memset(long_key, 'k', sizeof(long_key) - 1);
    memset(long_value, 'v', sizeof(long_value) - 1);
    EXPECT(put_meta(&h, &c, "f", long_key, "") == EINVAL);
    call_done(&c);
    EXPECT(put_meta(&h, &c, "f", "", "x") == EINVAL);
    call_done(&c);
    EXPECT(put_meta(&h, &c, "f", "x", long_value) == E2BIG);
    call_done(&c);
    long_key[FILE_META_KEY_MAX] = '\0';
    long_value[FILE_META_MAX - FILE_META_KEY_MAX] = '\0';
    EXPECT(put_meta(&h, &c, "f", long_key, long_value) == 0);
    struct entry_view v = call_entry(&c);
    EXPECT(v.n_meta == 1);
    EXPECT_STR(entry_meta(&v, long_key), long_value);
    call_done(&c);
    CALL(&h, &c, OP_FILE_WRITE, "ssuuu", "user", "f", 0644u, 0u, FILE_META_KEYS_MAX + 1u);
    EXPECT(c.status == E2BIG);
    call_done(&c);

    shell_says(&h, "user",
               "touch many big; " XATTR "[os.setxattr('many','user.e2b.k%d'%i,b'') "
               "for i in range(400)]; os.setxattr('big','user.e2b.big',b'b'*20000); "
               "os.setxattr('big','user.e2b.small',b's')\"");
    v = stat_of(&h, &c, "many");
    EXPECT(v.n_meta == FILE_META_KEYS_MAX);
    call_done(&c);
    v = stat_of(&h, &c, "big");
    EXPECT(v.n_meta == 1);
    EXPECT_STR(entry_meta(&v, "small"), "s");
    call_done(&c);

    shell_says(&h, "root",
               "cd /home/user; echo s > secret; " XATTR
               "os.setxattr('secret','user.e2b.k',b'hidden')\"; chmod 600 secret");
    v = stat_of(&h, &c, "secret");
    EXPECT(v.n_meta == 0);
    call_done(&c);
    host_stop(&h);
}

TAP_MAIN
