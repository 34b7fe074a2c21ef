/* Archives for the steps of builds. Whatever they are, the reader tells the same of them in one
 * piece and in many, and nothing but what it promises: no empty names, and as many bytes of a file
 * as its entry said. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/tar/tar_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct told {
    struct strbuf story;
    uint64_t left;
};

static int on_entry(void *arg, const struct tar_entry *entry, struct sg_error *e)
{
    struct told *t = arg;

    (void)e;
    assert(entry->path[0] && strlen(entry->path) < TAR_PATH_MAX);
    assert(strlen(entry->link) < TAR_PATH_MAX && entry->mode <= 07777);
    assert(entry->type == TAR_FILE || entry->size == 0);
    t->left = entry->size;
    strbuf_addf(&t->story, "%d %s %s %o %llu\n", (int)entry->type, entry->path, entry->link,
                entry->mode, (unsigned long long)entry->size);
    return 0;
}

static int on_data(void *arg, const void *p, size_t len, struct sg_error *e)
{
    struct told *t = arg;

    (void)e;
    assert(len > 0 && len <= t->left);
    t->left -= len;
    strbuf_add(&t->story, p, len);
    return 0;
}

static int on_entry_end(void *arg, struct sg_error *e)
{
    struct told *t = arg;

    (void)e;
    assert(t->left == 0);
    strbuf_addstr(&t->story, ".\n");
    return 0;
}

static int read_all(const uint8_t *data, size_t len, size_t piece, struct told *ret)
{
    static const struct tar_handlers h = {on_entry, on_data, on_entry_end};
    struct sg_error e = {0};
    struct tar_reader t;
    int r = 0;

    strbuf_init(&ret->story, 1u << 20);
    tar_init(&t, &h, ret);
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = tar_feed(&t, data + at, len - at < piece ? len - at : piece, &e);
    if (r == 0)
        r = tar_feed(&t, NULL, 0, &e);
    if (r == 0)
        r = tar_end(&t, &e);
    assert((r < 0) == (e.message[0] != '\0') && !strchr(e.message, '\n'));
    tar_done(&t);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const size_t pieces[] = {1, 100, 512};
    struct told whole = {0};
    int r = read_all(data, len, len + 1, &whole);

    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        struct told t = {0};

        assert(read_all(data, len, pieces[i], &t) == r);
        assert(t.story.len == whole.story.len &&
               memcmp(t.story.buf, whole.story.buf, t.story.len) == 0);
        strbuf_done(&t.story);
    }
    strbuf_done(&whole.story);
    return 0;
}
