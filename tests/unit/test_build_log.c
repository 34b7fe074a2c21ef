/* Logs of builds: output of commands becomes lines, and all of it has a limit. */
#include "store_place.h"

#include <sys/stat.h>

#include "front/builds/log.h"

TAP_MAIN

#define ID "b1"

static struct place place;
static struct store *store;

static void begin(struct build_log *l)
{
    struct store_tenant a;
    struct store_template t;
    struct store_build b = {.id = ID};
    struct sg_error e;

    place = place_make();
    store = open_ok(&place);
    EXPECT(store_tenant_ensure(store, "acme", &a, &e) == 0);
    EXPECT(store_template_ensure(store, a.id, "mine", 10, &t, &e) == 0);
    memcpy(b.template_id, t.id, sizeof(b.template_id));
    EXPECT(store_build_add(store, &b, 3, &e) == 0);
    build_log_init(l, store, ID);
    snprintf(l->prefix, sizeof(l->prefix), "[x]");
}

static void end(struct build_log *l)
{
    build_log_done(l);
    store_close(store);
    place_remove(&place);
}

struct seen {
    size_t lines, bytes;
    char last[128];
};

static void see(const struct store_log *line, void *arg)
{
    struct seen *s = arg;

    s->lines++;
    s->bytes += strlen(line->message);
    snprintf(s->last, sizeof(s->last), "%s", line->message);
}

static struct seen look(void)
{
    struct seen s = {0};
    struct sg_error e;

    EXPECT(store_build_log_each(store, ID, &(struct store_log_query){.limit = 1000000}, see, &s,
                                &e) == 0);
    return s;
}

TEST(lines)
{
    struct build_log l;

    begin(&l);
    build_log_output(&l, false, "one\r\ntw", 7);
    EXPECT(look().lines == 1);
    EXPECT_STR(look().last, "[x] [stdout]: one");
    build_log_output(&l, true, "no\n", 3);
    build_log_output(&l, false, "o\n\nthree", 8);
    EXPECT(look().lines == 4);
    build_log_flush(&l);
    EXPECT_STR(look().last, "[x] [stdout]: three");
    end(&l);
}

/* All of it may come at once, and nobody else is served meanwhile. */
TEST(many_lines_at_once)
{
    static char text[128 * 1024];
    struct build_log l;
    struct stat st;
    char wal[256];

    begin(&l);
    memset(text, '\n', sizeof(text));
    build_log_output(&l, false, text, sizeof(text));
    /* One write: 10,000 fill the log of the database until it is emptied, at 4 MiB. */
    snprintf(wal, sizeof(wal), "%s/server.db-wal", place.dir);
    EXPECT(stat(wal, &st) == 0 && st.st_size < 2 << 20);
    EXPECT(look().lines == 10001);
    EXPECT(strstr(look().last, "the rest is not kept") != NULL);
    end(&l);
}

TEST(long_lines)
{
    static char text[128 * 1024];
    struct build_log l;

    begin(&l);
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 20; i++)
        build_log_output(&l, false, text, sizeof(text));
    build_log_output(&l, true, "x\n", 2);
    build_log_flush(&l);
    EXPECT(look().bytes > 2u << 20 && look().bytes < (2u << 20) + 64 * 1024);
    EXPECT(strstr(look().last, "the rest is not kept") != NULL);
    end(&l);
}
