/* Layers merged: what a world has of what its layers say. */
#include "image/merge.h"
#include "image_rig.h"

TAP_MAIN

static char text[1 << 21];
static struct sg_error e;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct entry *const *)a)->name, (*(struct entry *const *)b)->name);
}

/* Appends what is in a directory: "name/", "name>target", "name:layer*links", in the order of names. */
static void show(const struct inode *dir, const char *path)
{
    struct entry *v[64];
    size_t n = 0;

    MAP_EACH(struct entry, entry, &dir->entries, by_name)
        v[n++] = entry;
    qsort(v, n, sizeof(v[0]), by_name);
    for (size_t i = 0; i < n; i++) {
        const struct inode *at = v[i]->inode;
        char name[300], more[400];
        size_t len = strlen(text);

        snprintf(name, sizeof(name), "%s%s", path, v[i]->name);
        more[0] = '\0';
        if (S_ISDIR(at->mode))
            snprintf(more, sizeof(more), "/");
        else if (S_ISLNK(at->mode))
            snprintf(more, sizeof(more), ">%s", at->target);
        else if (S_ISREG(at->mode) && at->links == 1)
            snprintf(more, sizeof(more), ":%u", at->layer);
        else if (S_ISREG(at->mode))
            snprintf(more, sizeof(more), ":%u*%u", at->layer, at->links);
        snprintf(text + len, sizeof(text) - len, "%s%s%s", len ? " " : "", name, more);
        snprintf(more, sizeof(more), "%s/", name);
        if (S_ISDIR(at->mode))
            show(at, more);
    }
}

/* The world of these layers, or "! " and why there is none. */
static const char *merged(const char *a, const char *b, const char *c)
{
    const char *layers[] = {a, b, c};
    struct tree t;
    int r = 0;

    tree_init(&t, 5000);
    text[0] = '\0';
    for (uint16_t i = 0; i < 3 && layers[i] && r == 0; i++) {
        AUTO(close_p) int fd = list_of(layers[i]);
        AUTO(records_close_p) struct records *l = NULL;
        EXPECT(records_open(fd, RIG_BLOCKS, &l, &e) == 0);
        r = merge_layer(&t, l, i + 1, &e);
    }
    if (r < 0)
        snprintf(text, sizeof(text), "! %s", e.message);
    else
        show(t.root, "");
    tree_done(&t);
    return text;
}

TEST(a_layer_over_another)
{
    EXPECT_STR(merged("d a\nf a/x\nf a/y\nf b", "d a\nf a/y\nf a/z\nf b", NULL),
               "a/ a/x:1 a/y:2 a/z:2 b:2");
    EXPECT_STR(merged("f deep/er/file", NULL, NULL), "deep/ deep/er/ deep/er/file:1");
}

TEST(the_last_of_entries_with_one_name_counts)
{
    EXPECT_STR(merged("f a\nl a x\nf b\np b", NULL, NULL), "a>x b");
    EXPECT_STR(merged("d a\nf a/x\nd a\nf a/y", NULL, NULL), "a/ a/x:1 a/y:1");
    EXPECT_STR(merged("d a\nf a/x\nf a\nf b\nd b\nf b/x", NULL, NULL), "a:1 b/ b/x:1");
}

TEST(files_and_directories_replace_each_other)
{
    EXPECT_STR(merged("d a\nf a/x\nd b\nf b/x\nf c", "f a\nl b a\nd c\nf c/y", NULL),
               "a:2 b>a c/ c/y:2");
}

TEST(whiteouts)
{
    EXPECT_STR(merged("f a\nd b\nf b/x\nf b/y\nf c", "w a\nw b/x\nw not/there\nw c/too", "w b"),
               "c/ not/");
    EXPECT_STR(merged("f a\nf b", "w a\nf a\nf b\nw b", NULL), "a:2 b:2");
}

TEST(opaque_directories_wherever_the_mark_is)
{
    static const char lower[] = "d a\nf a/x\nd a/sub\nf a/sub/y";

    EXPECT_STR(merged(lower, "o a\nf a/z\nf a/sub/n", NULL), "a/ a/sub/ a/sub/n:2 a/z:2");
    EXPECT_STR(merged(lower, "f a/z\nf a/sub/n\no a", NULL), "a/ a/sub/ a/sub/n:2 a/z:2");
    EXPECT_STR(merged(lower, "o /\nf b", NULL), "b:2");
    EXPECT_STR(merged("f a", "o a\nf a/x", NULL), "a/ a/x:2");
    EXPECT_STR(merged("f a\nf b", "o a\nl b x\no b\no c/d", NULL), "a/ b>x c/ c/d/");
}

TEST(links_of_the_layers_below_are_replaced)
{
    EXPECT_STR(merged("d usr/lib\nf usr/lib/x\nl lib usr/lib", "f lib/y", NULL),
               "lib/ lib/y:2 usr/ usr/lib/ usr/lib/x:1");
    EXPECT_STR(merged("d usr/lib\nl lib usr/lib", "w lib/x\nf usr/lib/y", NULL),
               "lib/ usr/ usr/lib/ usr/lib/y:2");
    EXPECT_STR(merged("d usr/lib\nl lib usr/lib", "f usr/lib/y", NULL),
               "lib>usr/lib usr/ usr/lib/ usr/lib/y:2");
}

TEST(links_of_the_same_layer_are_followed_below_the_root)
{
    EXPECT_STR(merged("d usr/lib\nl lib usr/lib\nf lib/x", NULL, NULL),
               "lib>usr/lib usr/ usr/lib/ usr/lib/x:1");
    EXPECT_STR(merged("l a/b ../../../c\nl c /d\nf a/b/x", NULL, NULL),
               "a/ a/b>../../../c c>/d d/ d/x:1");
    EXPECT_STR(merged("l a a\nf a/x", NULL, NULL),
               "! the layer's entry 'a/x' leads through too many symbolic links");
    EXPECT_STR(merged("l a b\nl b a\nf a/x", NULL, NULL),
               "! the layer's entry 'a/x' leads through too many symbolic links");
    EXPECT_STR(merged("f a\nf a/x", NULL, NULL),
               "! the layer's entry 'a/x' is below a file of the same layer");
}

TEST(hard_links)
{
    EXPECT_STR(merged("f a\nh b a\nh c b", NULL, NULL), "a:1*3 b:1*3 c:1*3");
    EXPECT_STR(merged("f a", "h b a", "w a"), "b:1");
    EXPECT_STR(merged("f a\nh b a", "f a", NULL), "a:2 b:1");
    EXPECT_STR(merged("f a\nh a a\nh b a\nh a b", NULL, NULL), "a:1*2 b:1*2");
    EXPECT_STR(merged("l a x\nh b a", NULL, NULL), "a>x b>x");
    EXPECT_STR(merged("d usr\nl s usr\nf usr/a\nh b s/a", NULL, NULL),
               "b:1*2 s>usr usr/ usr/a:1*2");
    EXPECT_STR(merged("h b a\nf a", NULL, NULL),
               "! the hard link 'b' is to 'a', which is not there");
    EXPECT_STR(merged("d a\nh b a", NULL, NULL),
               "! the hard link 'b' is to 'a', which is a directory");
    EXPECT_STR(merged("f a", "w a\nh b a", NULL),
               "! the hard link 'b' is to 'a', which is not there");
    EXPECT_STR(merged("h b x/a", NULL, NULL),
               "! the hard link 'b' is to 'x/a', which is not there");
}

TEST(looks_of_directories)
{
    AUTO(close_p) int fd = list_of("f a/x\nd a\nd /");
    AUTO(records_close_p) struct records *l = NULL;
    struct tree t;

    tree_init(&t, 10);
    EXPECT(records_open(fd, RIG_BLOCKS, &l, &e) == 0);
    EXPECT(t.root->mode == (S_IFDIR | 0755));
    EXPECT(merge_layer(&t, l, 1, &e) == 0);
    EXPECT(t.root->mode == (S_IFDIR | 0700));
    struct entry *a = tree_find(t.root, "a", 1);
    EXPECT(a && a->inode->mode == (S_IFDIR | 0700) && tree_find(a->inode, "x", 1));
    tree_done(&t);
}

TEST(a_world_has_a_limit)
{
    AUTO(close_p) int fd = list_of("f a\nf b\nf c\nf c");
    struct tree t;

    for (unsigned max = 2; max <= 3; max++) {
        AUTO(records_close_p) struct records *l = NULL;
        tree_init(&t, max);
        EXPECT(records_open(fd, RIG_BLOCKS, &l, &e) == 0);
        EXPECT(merge_layer(&t, l, 1, &e) == (max == 3 ? 0 : -EFBIG));
        tree_done(&t);
    }
}

/* A stranger can put a deep tree below another one by a link. */
TEST(deep_trees)
{
    AUTO(strbuf_done) struct strbuf deep = strbuf_upto(1 << 16), list = strbuf_upto(1 << 16);

    for (int i = 0; i < 900; i++)
        strbuf_addstr(&deep, "d/");
    strbuf_addf(&list, "f %sx\n", deep.buf);
    merged(list.buf, NULL, NULL);
    EXPECT(strncmp(text, "d/ d/d/ ", 8) == 0);
    strbuf_addf(&list, "l s %s\nf s/%sx", deep.buf, deep.buf);
    merged(list.buf, NULL, NULL);
    EXPECT(strncmp(text, "! the layer's entry 's/d/", 25) == 0 &&
           strstr(text, "too many directories"));
}
