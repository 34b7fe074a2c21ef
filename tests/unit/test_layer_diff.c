/* What differs between two stacks of layers, as a list. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/files/layer_diff.h"
#include "inside/files/layer_file.h"
#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "tap.h"
#include "wire/files.h"

enum { BASE, LOW, UP, OTHER, LAYERS };

static char top[] = "/tmp/layer-diff.XXXXXX";
static int layers[LAYERS];

static int run(const char *script)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/bash", "bash", "-c", script, NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void make(const char *script)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(1 << 16);

    snprintf(top, sizeof(top), "/tmp/layer-diff.XXXXXX");
    EXPECT(mkdtemp(top) != NULL);
    /* All have the same time; wh NAME is a mark of overlays. */
    strbuf_addf(&line,
                "set -e; cd %s; mkdir base low up other; wh() { mknod $1 c 0 0; }; "
                "%s; "
                "find . -maxdepth 4 -exec touch -h -d @1700000000 {} +",
                top, script);
    EXPECT(run(line.buf) == 0);
    for (int i = 0; i < LAYERS; i++) {
        static const char *const names[] = {"base", "low", "up", "other"};
        char path[64];
        snprintf(path, sizeof(path), "%s/%s", top, names[i]);
        layers[i] = open(path, LAYER_DIR_FLAGS);
        EXPECT(layers[i] >= 0);
    }
}

static void drop(void)
{
    char line[64];

    for (int i = 0; i < LAYERS; i++)
        close(layers[i]);
    snprintf(line, sizeof(line), "rm -rf %s", top);
    EXPECT(run(line) == 0);
}

/* "A f 3 /path\n...", with what is in the head before it. */
static const char *diff(int from_of, size_t n_of, const int *against, size_t n, const char *after)
{
    static char told[1 << 16];
    AUTO(close_p) int list = memfd_create("list", MFD_CLOEXEC);
    struct layer_diff d = {
        .of = {layers + from_of, n_of}, .against = {against, n}, .owners = true, .list = list};
    AUTO(free_p) char *text = NULL;
    struct sg_error e = {0};
    size_t len = 0;

    EXPECT(fd_write_all(list, after, strlen(after)) == 0);
    if (layer_diff_write(&d, &e) < 0) {
        snprintf(told, sizeof(told), "%s", e.message);
        return told;
    }
    EXPECT(lseek(list, 0, SEEK_SET) == 0 && fd_read_all(list, FILES_DIFF_MAX, &text, &len) == 0);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = '\n';
    snprintf(told, sizeof(told), "%s", text);
    return told;
}

TEST(kinds_of_changes)
{
    make("mkdir -p base/d base/gone/in base/kept up/d up/new/deep; "
         "echo one > base/d/same; echo one > base/d/size; echo one > base/d/mode; "
         "echo one > base/d/removed; ln -s a base/d/link; ln -s a base/d/samelink; "
         "echo x > base/gone/in/f; echo x > base/kept/f; "
         "cp -p base/d/same up/d/same; echo three > up/d/size; echo one > up/d/mode; chmod 600 "
         "up/d/mode; "
         "wh up/d/removed; ln -s b up/d/link; ln -s a up/d/samelink; wh up/gone; wh up/never; "
         "echo hello > up/new/f; mkfifo up/new/deep/p; ln -s x up/new/l; chmod 700 up/d");
    EXPECT_STR(diff(BASE, 3, layers, 1, ""),
               "..Md 0 /d\nMl 0 /d/link\nMf 4 /d/mode\nDf 4 /d/removed\nMf 6 /d/size\nDd 0 /gone\n"
               "Ad 0 /new\nAd 0 /new/deep\nAo 0 /new/deep/p\nAf 6 /new/f\nAl 0 /new/l\n");
    EXPECT_STR(diff(BASE, 1, layers, 1, ""), "..");
    /* the other way round */
    EXPECT_STR(diff(BASE, 1, layers, 3, ""),
               "..Md 0 /d\nMl 0 /d/link\nMf 4 /d/mode\nAf 4 /d/removed\nMf 4 /d/size\nAd 0 /gone\n"
               "Ad 0 /gone/in\nAf 2 /gone/in/f\nDd 0 /new\n");
    drop();
}

TEST(types_and_opaque_directories)
{
    make("mkdir -p base/a/sub base/b base/c low/c up/a up/c; echo x > base/a/f; echo x > "
         "base/a/sub/g; "
         "echo x > base/b/f; echo x > base/c/f; echo y > low/c/g; "
         "echo new > up/a/h; echo f > up/b; echo y > up/c/h; ln -s c up/e; mkdir base/e");
    AUTO(close_p) int opaque = openat(layers[UP], "a", LAYER_DIR_FLAGS);
    EXPECT(layer_set_mark(opaque, MARK_OPAQUE, "y", 1) == 0);
    EXPECT_STR(diff(BASE, 3, layers, 1, ""),
               "..Df 2 /a/f\nAf 4 /a/h\nDd 0 /a/sub\nMf 2 /b\nAf 2 /c/g\nAf 2 /c/h\nMl 0 /e\n");
    EXPECT_STR(diff(BASE, 3, layers, 2, ""),
               "..Df 2 /a/f\nAf 4 /a/h\nDd 0 /a/sub\nMf 2 /b\nAf 2 /c/h\nMl 0 /e\n");
    drop();
}

TEST(two_that_share_less_than_all)
{
    int other[2];

    make("mkdir -p up/d other/d; echo a > up/d/mine; echo a > up/d/both; echo b > other/d/his; "
         "cp -p up/d/both other/d/both; wh up/x; echo x > base/x");
    other[0] = layers[BASE];
    other[1] = layers[OTHER];
    EXPECT_STR(diff(BASE, 3, other, 2, ""), "..Df 2 /d/his\nAf 2 /d/mine\nDf 2 /x\n");
    drop();
}

TEST(pages)
{
    AUTO(strbuf_done) struct strbuf all = strbuf_upto(1 << 20);
    char after[256] = "";
    int pages = 0;

    make("mkdir -p up/a/b up/c; (cd up/a/b; seq 1 700 | xargs touch); (cd up/c; seq 1 1400 | xargs "
         "touch); "
         "touch up/a.b up/a-b up/ab");
    for (bool more = true; more && pages < 9; pages++) {
        const char *page = diff(UP, 1, layers, 1, after), *last;
        more = page[0] == 'm';
        strbuf_addstr(&all, page + 2);
        last = page + strlen(page) - 1;
        while (last > page && last[-1] != '\n')
            last--;
        snprintf(after, sizeof(after), "%.*s", (int)strcspn(strchr(last, '/'), "\n"),
                 strchr(last, '/'));
    }
    size_t lines = 0;
    for (size_t i = 0; i < all.len; i++)
        lines += all.buf[i] == '\n';
    EXPECT(pages == 3 && lines == 3 + 2 + 1 + 700 + 1400);
    EXPECT(strncmp(all.buf, "Ad 0 /a\nAd 0 /a/b\nAf 0 /a/b/1\n", 30) == 0);
    EXPECT(strstr(all.buf, "/a/b/99\nAf 0 /a-b\nAf 0 /a.b\nAf 0 /ab\nAd 0 /c\n") != NULL);
    EXPECT_STR(diff(UP, 1, layers, 1, "/c/999"), "..");
    EXPECT_STR(diff(UP, 1, layers, 1, "/c/998"), "..Af 0 /c/999\n");
    EXPECT_STR(diff(UP, 1, layers, 1, "/z"), "..");
    drop();
}

/* Very deep and very long names are left out, and it is told. */
TEST(deep_trees)
{
    make("(cd up; n=$(printf '%0200d' 1); for i in $(seq 30); do mkdir $n; cd $n; done)");
    EXPECT(strncmp(diff(UP, 1, layers, 1, ""), ".lAd", 4) == 0);
    drop();
    make("(cd up; for i in $(seq 200); do mkdir d; cd d; done)");
    EXPECT(strncmp(diff(UP, 1, layers, 1, ""), ".lAd", 4) == 0);
    drop();
}

TAP_MAIN
