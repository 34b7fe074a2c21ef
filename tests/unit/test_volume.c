/* Volumes: paths and records, and a helper's child on a directory of this test. The child keeps the
 * rights of whoever runs the test: what confines it is tried where it runs (tests/e2e). */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "inside/files/layer_stack_merge.h"
#include "inside/volume/volume.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "tap.h"
#include "tar_make.h"

TAP_MAIN

TEST(paths_have_one_form)
{
    static const struct {
        const char *given, *path;
    } cases[] = {{"", "/"},          {"/", "/"},
                 {"a", "/a"},        {"//a//b/", "/a/b"},
                 {"/./a/.", "/a"},   {"/a/../b", "/b"},
                 {"/../../x", "/x"}, {"/a/b/../../..", "/"},
                 {"/...", "/..."},   {"/..a/b..", "/..a/b.."}};
    char path[VOLUME_PATH_MAX], longest[VOLUME_PATH_MAX + 8], name[300];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        EXPECT(volume_path(cases[i].given, strlen(cases[i].given), path) == 0);
        EXPECT_STR(path, cases[i].path);
    }
    EXPECT(volume_path("/a\0b", 4, path) == -EINVAL);
    memset(name, 'x', sizeof(name));
    EXPECT(volume_path(name, 255, path) == 0 && volume_path(name, 256, path) == -ENAMETOOLONG);
    for (size_t i = 0; i < sizeof(longest); i++)
        longest[i] = i % 2 ? 'x' : '/';
    EXPECT(volume_path(longest, 4094, path) == 0 && strlen(path) == 4094);
    EXPECT(volume_path(longest, 4098, path) == -ENAMETOOLONG);
}

TEST(requests_that_are_not_sound)
{
    const struct volume_request good = {.magic = VOLUME_MAGIC, .op = VOLUME_STAT, .path_len = 2};
    struct volume_request wrong[9];

    EXPECT(volume_request_sound(&good, "/a"));
    EXPECT(!volume_request_sound(&good, "a/") && !volume_request_sound(&good, "/."));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        wrong[i] = good;
    wrong[0].magic++;
    wrong[1].op = VOLUME_OP_MAX_;
    wrong[2].flags = 1u << 20;
    wrong[3].path_len = VOLUME_PATH_MAX;
    wrong[4].op = VOLUME_LIST;
    wrong[5] = (struct volume_request){
        .magic = VOLUME_MAGIC, .op = VOLUME_LIST, .path_len = 2, .depth = VOLUME_DEPTH_MAX + 1};
    wrong[6].flags = VOLUME_HAS_UID;
    wrong[6].uid = 65536;
    wrong[7].flags = VOLUME_HAS_MODE;
    wrong[7].mode = 010000;
    wrong[8].path_len = 0;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        EXPECT(!volume_request_sound(&wrong[i], "/a"));
}

/* ---- a child --------------------------------------------------------------------------------- */

static char top[] = "/tmp/volume.XXXXXX";
static int root = -1;
static struct volume_size *size;

static void open_volume(void)
{
    snprintf(top, sizeof(top), "/tmp/volume.XXXXXX");
    EXPECT(mkdtemp(top) != NULL);
    root = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size = mmap(NULL, sizeof(*size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(root >= 0 && size != MAP_FAILED);
}

static void close_volume(void)
{
    close_p(&root);
    munmap(size, sizeof(*size));
    EXPECT(layer_remove_tree(AT_FDCWD, top, NULL) == 0);
}

/* All bytes of the last answer. */
static struct strbuf received;

struct answer {
    struct volume_end end; /* code 1: there was none */
    size_t n_entries, n_bytes;
    struct volume_entry last;
    char path[VOLUME_LISTED_MAX + 1], target[VOLUME_PATH_MAX], bytes[64];
};

static void take(struct answer *a, const struct volume_record *r, const char *payload)
{
    const char *path, *target;

    if (r->kind == VOLUME_END) {
        EXPECT(volume_end_read(payload, r->len, &a->end) == 0);
    } else if (r->kind == VOLUME_DATA) {
        strbuf_add(&received, payload, r->len);
        for (size_t i = 0; i < r->len && a->n_bytes + i + 1 < sizeof(a->bytes); i++)
            a->bytes[a->n_bytes + i] = payload[i];
        a->n_bytes += r->len;
    } else {
        EXPECT(volume_entry_read(payload, r->len, &a->last, &path, &target) == 0);
        snprintf(a->path, sizeof(a->path), "%.*s", (int)a->last.path_len, path);
        snprintf(a->target, sizeof(a->target), "%.*s", (int)a->last.target_len, target);
        a->n_entries++;
    }
}

/* Asks a child; body NULL: nothing is written. cut: the client goes before the end. */
static struct answer ask_bytes(struct volume_request q, const char *path, const char *body,
                               size_t body_len, bool cut)
{
    static char in[1u << 20];
    struct answer a = {.end.code = 1};
    struct volume_record r;
    int socks[2];
    size_t len = 0;
    ssize_t n;

    strbuf_done(&received);
    strbuf_init(&received, 4u << 20);
    q.magic = VOLUME_MAGIC;
    q.path_len = (uint32_t)strlen(path);
    q.max_bytes = q.max_bytes ? q.max_bytes : 1u << 30;
    q.depth = q.op == VOLUME_LIST && q.depth == 0 ? 1 : q.depth;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(socks[0]);
        volume_serve(socks[1], root, size);
        _exit(0);
    }
    close(socks[1]);
    fd_write_all(socks[0], &q, sizeof(q));
    fd_write_all(socks[0], path, q.path_len);
    if (body) {
        for (size_t at = 0; at < body_len; at += r.len) {
            r = (struct volume_record){.kind = VOLUME_DATA, .len = VOLUME_RECORD_MAX};
            r.len = body_len - at < r.len ? (uint32_t)(body_len - at) : r.len;
            fd_write_all(socks[0], &r, sizeof(r));
            fd_write_all(socks[0], body + at, r.len);
        }
        r = (struct volume_record){.kind = VOLUME_END};
        if (!cut)
            fd_write_all(socks[0], &r, sizeof(r));
    }
    if (cut)
        shutdown(socks[0], SHUT_WR);
    while ((n = read(socks[0], in + len, sizeof(in) - len)) > 0) {
        size_t at = 0;
        int64_t took;

        len += (size_t)n;
        while ((took = volume_take(in + at, len - at, &r)) > 0) {
            take(&a, &r, in + at + sizeof(r));
            at += (size_t)took;
        }
        EXPECT(took == 0);
        memmove(in, in + at, len - at);
        len -= at;
    }
    close(socks[0]);
    EXPECT(waitpid(pid, NULL, 0) == pid);
    return a;
}

static struct answer ask_with(struct volume_request q, const char *path, const char *body, bool cut)
{
    return ask_bytes(q, path, body, body ? strlen(body) : 0, cut);
}

static struct answer ask(enum volume_op op, const char *path)
{
    return ask_with((struct volume_request){.op = op}, path, NULL, false);
}

static struct answer write_file(const char *path, const char *body)
{
    return ask_with((struct volume_request){.op = VOLUME_WRITE}, path, body, false);
}

TEST(a_file_is_written_read_and_removed)
{
    open_volume();
    struct answer a = write_file("/f", "hello");
    EXPECT(a.end.code == 0 && a.last.size == 5 && a.last.type == VOLUME_FILE &&
           a.last.mode == 0644);
    a = ask(VOLUME_READ, "/f");
    EXPECT(a.end.code == 0 && a.n_bytes == 5);
    EXPECT_STR(a.bytes, "hello");
    EXPECT(ask(VOLUME_READ, "/").end.code == -EISDIR && ask(VOLUME_READ, "/g").end.code == -ENOENT);
    EXPECT(write_file("/no/f", "x").end.code == -ENOENT);
    a = ask_with((struct volume_request){.op = VOLUME_WRITE, .flags = VOLUME_FORCE}, "/d/e/f", "x",
                 false);
    EXPECT(a.end.code == 0 && ask(VOLUME_STAT, "/d/e").last.type == VOLUME_DIRECTORY);
    EXPECT(write_file("/d", "x").end.code == -EISDIR && write_file("/", "x").end.code == -EISDIR);
    EXPECT(ask(VOLUME_REMOVE, "/d").end.code == 0 && ask(VOLUME_STAT, "/d").end.code == -ENOENT);
    EXPECT(ask(VOLUME_REMOVE, "/").end.code == -EBUSY &&
           ask(VOLUME_REMOVE, "/x").end.code == -ENOENT);
    close_volume();
}

TEST(a_client_that_goes_leaves_the_old_file)
{
    open_volume();
    write_file("/f", "old");
    struct answer a = ask_with((struct volume_request){.op = VOLUME_WRITE}, "/f", "new", true);
    EXPECT(a.end.code == -ECANCELED);
    EXPECT_STR(ask(VOLUME_READ, "/f").bytes, "old");
    EXPECT(ask(VOLUME_LIST, "/").n_entries == 1);
    close_volume();
}

TEST(links_lead_nowhere_else)
{
    open_volume();
    mkdirat(root, "etc", 0755);
    EXPECT(symlinkat("/etc/passwd", root, "abs") == 0);
    EXPECT(symlinkat("../../../../../../etc/passwd", root, "up") == 0);
    EXPECT(symlinkat("/proc/self/root/etc", root, "magic") == 0);
    EXPECT(symlinkat("loop", root, "loop") == 0);
    EXPECT(ask(VOLUME_READ, "/abs").end.code == -ENOENT &&
           ask(VOLUME_READ, "/up").end.code == -ENOENT);
    EXPECT(write_file("/etc/passwd", "mine").end.code == 0);
    EXPECT_STR(ask(VOLUME_READ, "/abs").bytes, "mine");
    EXPECT_STR(ask(VOLUME_READ, "/up").bytes, "mine");
    EXPECT(ask(VOLUME_READ, "/magic/passwd").end.code == -ENOENT);
    EXPECT(ask(VOLUME_READ, "/loop").end.code == -ELOOP);
    struct answer a = ask(VOLUME_STAT, "/abs");
    EXPECT(a.last.type == VOLUME_LINK);
    EXPECT_STR(a.target, "/etc/passwd");
    EXPECT(mkfifoat(root, "fifo", 0666) == 0 && ask(VOLUME_READ, "/fifo").end.code == -EINVAL);
    EXPECT(ask(VOLUME_REMOVE, "/abs").end.code == 0);
    EXPECT_STR(ask(VOLUME_READ, "/etc/passwd").bytes, "mine");
    close_volume();
}

TEST(lists_have_a_depth)
{
    open_volume();
    mkdirat(root, "a", 0755);
    mkdirat(root, "a/b", 0755);
    write_file("/a/b/c", "x");
    EXPECT(ask(VOLUME_LIST, "/").n_entries == 1);
    struct answer a =
        ask_with((struct volume_request){.op = VOLUME_LIST, .depth = 3}, "/", NULL, false);
    EXPECT(a.n_entries == 3);
    EXPECT_STR(a.path, "/a/b/c");
    EXPECT(ask(VOLUME_LIST, "/a/b/c").end.code == -ENOTDIR);
    close_volume();
}

TEST(directories_modes_and_force)
{
    open_volume();
    struct volume_request q = {.op = VOLUME_MKDIR, .flags = VOLUME_HAS_MODE, .mode = 01711};
    EXPECT(ask_with(q, "/d", NULL, false).last.mode == 01711);
    EXPECT(ask_with(q, "/d", NULL, false).end.code == -EEXIST);
    EXPECT(ask_with(q, "/", NULL, false).end.code == -EEXIST);
    q.flags |= VOLUME_FORCE;
    EXPECT(ask_with(q, "/d", NULL, false).end.code == 0);
    EXPECT(ask_with(q, "/", NULL, false).end.code == 0);
    write_file("/f", "x");
    EXPECT(ask_with(q, "/f", NULL, false).end.code == -EEXIST);
    q = (struct volume_request){.op = VOLUME_CHANGE, .flags = VOLUME_HAS_MODE, .mode = 0600};
    EXPECT(ask_with(q, "/f", NULL, false).last.mode == 0600);
    EXPECT(write_file("/f", "y").last.mode == 0600); /* it keeps it */
    EXPECT(symlinkat("f", root, "l") == 0 && ask_with(q, "/l", NULL, false).end.code == -EINVAL);
    close_volume();
}

TEST(what_is_over_the_size_is_refused)
{
    struct volume_request q = {.op = VOLUME_WRITE, .max_bytes = 64u << 10};
    static char body[60000];

    open_volume();
    memset(body, 'x', sizeof(body) - 1);
    EXPECT(ask_with(q, "/a", body, false).end.code == 0);
    struct answer a = ask_with(q, "/b", body, false);
    EXPECT(a.end.code == -EDQUOT && ask(VOLUME_STAT, "/b").end.code == -ENOENT);
    EXPECT(ask(VOLUME_REMOVE, "/a").end.code == 0);
    EXPECT(ask_with(q, "/b", body, false).end.code == 0);
    a = ask_with((struct volume_request){.op = VOLUME_USAGE}, "/", NULL, false);
    EXPECT(a.end.measured && a.end.used >= 60000 && a.end.used < 80000);
    EXPECT(linkat(root, "b", root, "c", 0) == 0);
    uint64_t once = a.end.used;
    a = ask_with((struct volume_request){.op = VOLUME_USAGE}, "/", NULL, false);
    EXPECT(a.end.used >= once && a.end.used < once + 4096); /* one file, two names */
    close_volume();
}

TEST(a_deep_tree_counts_as_full_until_it_is_removed)
{
    open_volume();
    int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < 1200; i++) {
        EXPECT(mkdirat(dir, "d", 0755) == 0);
        int next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = next;
    }
    close(dir);
    struct answer a = write_file("/f", "x");
    EXPECT(a.end.code == -EOVERFLOW || a.end.code == -EDQUOT);
    EXPECT(ask(VOLUME_REMOVE, "/d").end.code == 0);
    EXPECT(write_file("/f", "x").end.code == 0);
    close_volume();
}

/* ---- archives -------------------------------------------------------------------------------- */

static struct answer import(const char *path, const struct strbuf *tar, uint64_t max_bytes)
{
    return ask_bytes((struct volume_request){.op = VOLUME_IMPORT, .max_bytes = max_bytes}, path,
                     tar->len > 0 ? tar->buf : "", tar->len, false);
}

TEST(an_archive_goes_in_and_out)
{
    AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
    struct stat a, b;

    open_volume();
    tar_made_add(&tar, '5', "./", "", 0700, "", 0);
    tar_made_add(&tar, '5', "./d/", "", 0555, "", 0);
    tar_made_file(&tar, "./d/f", 06755, "hello");
    tar_made_add(&tar, '1', "hard", "./d/f", 0644, "", 0);
    tar_made_add(&tar, '2', "way", "/etc/passwd", 0777, "", 0);
    tar_made_file(&tar, "x/y/z", 0600, "parents are made");
    tar_made_file(&tar, "x/y/z", 0644, "the last one counts");
    tar_made_end(&tar);
    EXPECT(import("/", &tar, 0).end.code == 0 && ask(VOLUME_LIST, "/").n_entries == 4);
    EXPECT(ask(VOLUME_STAT, "/d").last.mode == 0555 && ask(VOLUME_STAT, "/d/f").last.mode == 0755);
    EXPECT_STR(ask(VOLUME_READ, "/x/y/z").bytes, "the last one counts");
    EXPECT_STR(ask(VOLUME_STAT, "/way").target, "/etc/passwd");
    EXPECT(fstatat(root, "d/f", &a, 0) == 0 && fstatat(root, "hard", &b, 0) == 0 &&
           a.st_ino == b.st_ino);
    EXPECT(mkfifoat(root, "pipe", 0600) == 0);

    EXPECT(ask(VOLUME_EXPORT, "/").end.code == 0 && received.len % 512 == 0);
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(TAR_MADE_MAX);
    strbuf_add(&out, received.buf, received.len);
    struct answer again = import("/", &out, 0); /* the names are taken */
    EXPECT(again.end.code == -EEXIST && strstr(again.end.message, "is there already"));
    EXPECT(mkdirat(root, "copy", 0755) == 0 && import("/copy", &out, 0).end.code == 0);
    EXPECT(ask(VOLUME_LIST, "/copy").n_entries == 4); /* without the pipe */
    EXPECT_STR(ask(VOLUME_READ, "/copy/x/y/z").bytes, "the last one counts");
    EXPECT(fstatat(root, "copy/d/f", &a, 0) == 0 && fstatat(root, "copy/hard", &b, 0) == 0 &&
           a.st_ino == b.st_ino);
    EXPECT(ask(VOLUME_EXPORT, "/d/f").end.code == -ENOTDIR &&
           ask(VOLUME_EXPORT, "/no").end.code == -ENOENT);
    close_volume();
}

/* What makes it one, besides a file that comes first. */
static const struct {
    char type;
    const char *name, *link, *words;
} hostile[] = {
    {'0', "/etc/x", "", "is an absolute path"},
    {'0', "a/../../x", "", "leads out of it"},
    {'0', "way/x", "", "leads through a link"},
    {'5', "way", "", "leads through a link"},
    {'1', "x", "/etc/shadow", "is an absolute path"},
    {'1', "x", "../x", "leads out of it"},
    {'1', "x", "way/passwd", "leads through a link"},
    {'1', "x", "later", "which is not before it"},
    {'0', "first/x", "", "leads through a link or a file"},
    {'0', ".", "", "is no name for a file"},
    {'3', "x", "", "is no file, directory or link"},
    {'6', "x", "", "is no file, directory or link"},
};

TEST(an_archive_that_is_refused_leaves_nothing)
{
    static char large[100000];

    open_volume();
    for (size_t i = 0; i <= ARRAY_SIZE(hostile) + 1; i++) {
        AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);
        const char *words = "ends in the middle";

        tar_made_file(&tar, "first", 0644, "1");
        tar_made_add(&tar, '2', "way", "/etc", 0777, "", 0);
        if (i < ARRAY_SIZE(hostile)) {
            words = hostile[i].words;
            tar_made_add(&tar, hostile[i].type, hostile[i].name, hostile[i].link, 0644, "", 0);
        } else {
            tar_made_add(&tar, '0', "large", "", 0644, large, sizeof(large));
            words = i == ARRAY_SIZE(hostile) ? "the volume may hold 64 KiB" : words;
            tar.len -= i > ARRAY_SIZE(hostile) ? 600 : 0;
        }
        struct answer a = import("/", &tar, i == ARRAY_SIZE(hostile) ? 64u << 10 : 0);
        if (!strstr(a.end.message, words))
            printf("# '%s'\n", a.end.message);
        EXPECT(a.end.code == (i == ARRAY_SIZE(hostile) ? -EDQUOT : -EINVAL));
        EXPECT(strstr(a.end.message, words) && strstr(a.end.message, "nothing of it was kept"));
        EXPECT(ask(VOLUME_LIST, "/").n_entries == 0);
    }
    /* Nor does one that ends between two entries, or before the first. */
    for (int n = 0; n < 2; n++) {
        AUTO(strbuf_done) struct strbuf tar = strbuf_upto(TAR_MADE_MAX);

        if (n > 0)
            tar_made_file(&tar, "first", 0644, "1");
        struct answer a = import("/", &tar, 0);
        EXPECT(a.end.code == -EINVAL && strstr(a.end.message, "is cut off"));
        EXPECT(ask(VOLUME_LIST, "/").n_entries == 0);
    }
    /* Nor does a client that goes. */
    EXPECT(ask_bytes((struct volume_request){.op = VOLUME_IMPORT}, "/", "x", 1, true).end.code ==
           -ECANCELED);
    EXPECT(ask(VOLUME_LIST, "/").n_entries == 0);
    close_volume();
}

/* Returns how often there was room in a volume that has none. */
static int take_often(uint64_t bytes)
{
    struct volume_serving s = {.size = size, .q = {.max_bytes = 1u << 30}};
    int taken = 0;

    for (uint64_t until = clock_ns() + 200000000; clock_ns() < until;)
        taken += volume_take_room(&s, bytes) == 0;
    return taken;
}

TEST(a_full_volume_has_no_room_whoever_asks_at_once)
{
    int status = -1;

    open_volume();
    atomic_store(&size->used, UINT64_MAX);
    atomic_store(&size->measured_ns, clock_ns());
    pid_t pid = fork();
    if (pid == 0)
        _exit(take_often(65536) > 0);
    EXPECT(take_often(1) == 0);
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    EXPECT(atomic_load(&size->used) == UINT64_MAX);
    close_volume();
}

TEST(one_process_measures_and_a_killed_one_is_replaced)
{
    open_volume();
    uint64_t before = clock_ns();
    atomic_store(&size->beat_ns, before - 59500000000ull); /* 59.5 s ago */
    struct answer a = ask(VOLUME_USAGE, "/");
    EXPECT(a.end.code == 0 && a.end.measured && clock_ns() - before >= 500000000);
    EXPECT(atomic_load(&size->beat_ns) == 0);
    close_volume();
}

TEST(nonsense_is_not_answered)
{
    open_volume();
    EXPECT(ask_with((struct volume_request){.op = VOLUME_OP_MAX_}, "/", NULL, false).end.code == 1);
    EXPECT(ask(VOLUME_STAT, "relative").end.code == 1);
    EXPECT(ask(VOLUME_STAT, "/a/../b").end.code == 1);
    close_volume();
}
