/* sandglass ctx: command lines, and the trees of paths and checkpoints. */
#include "tap.h"

#include <jansson.h>
#include <locale.h>

#include "cli/client/usage_text.h"
#include "cli/client/ctx.h"
#include "cli/client/table.h"
#include "cli/client/tree.h"

TAP_MAIN

#define ARGS_MAX 16

static struct ctx_options options;

static int parse(const struct client_verb *verb, void *self, const char *line, struct sg_error *e)
{
    static char text[512];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;

    snprintf(text, sizeof(text), "%s %s", verb->name, line);
    memset(argv, 0, sizeof(argv));
    for (char *p = text, *word; (word = strsep(&p, " ")) && argc < ARGS_MAX;)
        if (*word)
            argv[argc++] = word;
    return client_parse(verb, argc, argv, self, e);
}

static void expect_taken(const char *line, size_t n_args)
{
    struct sg_error e = {0};

    options = (struct ctx_options){0};
    EXPECT(parse(&ctx_verb, &options, line, &e) == 0);
    EXPECT_STR(e.message, "");
    EXPECT(options.base.n_args == n_args);
}

static void expect_refused(const char *line, const char *words)
{
    struct sg_error e = {0};

    options = (struct ctx_options){0};
    EXPECT(parse(&ctx_verb, &options, line, &e) < 0);
    if (!strstr(e.message, words))
        printf("# ctx %s: '%s' does not say '%s'\n", line, e.message, words);
    EXPECT(strstr(e.message, words) != NULL);
}

TEST(each_action_takes_its_arguments)
{
    expect_taken("ls", 0);
    expect_taken("ls --status all,ready c", 1);
    expect_taken("--json ls", 0);
    expect_taken("get abc", 1);
    expect_taken("get c p --json", 2);
    expect_taken("touch abc --ttl 90s", 1);
    EXPECT(options.ttl_s == 90);
    expect_taken("branch c from to --inherit files --ttl 1h", 3);
    EXPECT_STR(options.inherit, "files");
    expect_taken("merge c a b", 3);
    expect_taken("branch c from to", 3);
    EXPECT(ctx_inherit(&options) == NULL);
    expect_taken("branch c from to --state --wait 1.5s", 3);
    EXPECT_STR(ctx_inherit(&options), "state");
    EXPECT(options.wait_ms == 1500);
    expect_taken("branch c from to --replay --at m1", 3);
    EXPECT_STR(ctx_inherit(&options), "replay");
    expect_taken("branch c from to --at m1", 3);
    EXPECT_STR(ctx_inherit(&options), "state");
    expect_taken("branch c from to --inherit state --at m1", 3);
    expect_taken("log abc", 1);
    expect_taken("log c p --json", 2);
    expect_taken("rewind abc m1", 2);
    expect_taken("rewind c p m1", 3);
    expect_taken("rewind abc --checkpoint k", 1);
    expect_taken("rewind c p --checkpoint k", 2);
    expect_taken("rewind c p m1 --accept-files", 3);
    expect_taken("rm a b c d e", 5);
    expect_taken("rm --conversation c -y", 0);
    expect_taken("rm --expired", 0);
    expect_taken("--help", 0);
    expect_taken("get -- -x", 1);
}

TEST(what_is_wrong_is_named)
{
    expect_refused("", "no action given");
    expect_refused("list", "'list' is not ls, get");
    expect_refused("ls a b", "unexpected argument 'b': ls takes [CONVERSATION]");
    expect_refused("get", "get takes ID, or CONVERSATION PATH");
    expect_refused("get a b c", "unexpected argument 'c'");
    expect_refused("branch c from", "branch takes CONVERSATION FROM TO");
    expect_refused("merge c", "merge takes CONVERSATION SOURCE TARGET");
    expect_refused("rm", "no context given");
    expect_refused("rm a --expired", "one of them");
    expect_refused("rm --conversation c --expired", "one of them");
    expect_refused("get a --ttl 1h", "--ttl is not an option of get");
    expect_refused("ls --yes", "--yes is not an option of ls");
    expect_refused("merge c a b --inherit files", "--inherit is not an option of merge");
    expect_refused("touch a --ttl 0", "--ttl '0'");
    expect_refused("ls --status=", "--status: the value is empty");
    expect_refused("ls --nonsense", "unknown option");
    expect_refused("branch c a b --state --replay", "one of them");
    expect_refused("branch c a b --state --inherit files", "one of them");
    expect_refused("branch c a b --at m1 --inherit files", "--at needs --state or --replay");
    expect_refused("branch c a b --wait 1s", "--wait needs --state or --replay");
    expect_refused("branch c a b --state --wait 11m", "--wait '11m' is more than 10m");
    expect_refused("branch c a b --at=", "--at: the value is empty");
    expect_refused("ls --state", "--state is not an option of ls");
    expect_refused("log", "log takes ID, or CONVERSATION PATH");
    expect_refused("log a --at m1", "--at is not an option of log");
    expect_refused("rewind abc", "no target given");
    expect_refused("rewind c p m1 --checkpoint k", "not both");
    expect_refused("rewind", "rewind takes ID MESSAGE");
    expect_refused("branch c p q --state --accept-files", "--accept-files needs --at");
    expect_refused("log c p --accept-files", "--accept-files");
}

TEST(usage_takes_days)
{
    AUTO(free_p) void *self = xcalloc(1, usage_verb.options_size);
    struct sg_error e = {0};

    EXPECT(parse(&usage_verb, self, "--from 2026-01-31 --to 2026-12-01", &e) == 0);
    EXPECT(parse(&usage_verb, self, "--from yesterday", &e) < 0);
    EXPECT_STR(e.message, "--from 'yesterday' is not a day such as 2026-03-31");
    EXPECT(parse(&usage_verb, self, "--to 2026-1-31", &e) < 0);
    EXPECT(parse(&usage_verb, self, "--to 2026-01-311", &e) < 0);
    EXPECT(parse(&usage_verb, self, "today", &e) < 0);
    EXPECT(parse(&usage_verb, self, "--cost --by conversation --conversation c --json", &e) == 0);
    EXPECT(parse(&usage_verb, self, "--by week", &e) < 0);
    EXPECT_STR(e.message, "--by 'week' is not day or conversation");
}

TEST(costs_are_rounded_to_cents)
{
    static const char *const cases[][2] = {
        {"0", "0.00"},
        {"1", "1.00"},
        {"1.2345", "1.23"},
        {"1.235", "1.24"},
        {"0.995", "1.00"},
        {"0.1", "0.10"},
        {"0.005", "0.01"},
        {"0.004999999999", "<0.01"},
        {"12345.678", "12345.68"},
        {"", "0.00"},
        {"nonsense", "0.00"},
        {"0.000000000001", "<0.01"},
    };
    char text[64];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        EXPECT_STR(usage_cents(cases[i][0], text, sizeof(text)), cases[i][1]);
}

TEST(events_take_filters)
{
    AUTO(free_p) void *self = xcalloc(1, events_verb.options_size);
    struct sg_error e = {0};

    EXPECT(parse(&events_verb, self, "-f --types sandbox.* --after 7 --json", &e) == 0);
    EXPECT(parse(&events_verb, self, "--after x", &e) < 0);
    EXPECT(strstr(e.message, "--after"));
    EXPECT(parse(&events_verb, self, "--sandbox ../x", &e) < 0);
    EXPECT(parse(&events_verb, self, "extra", &e) < 0);
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Label and status of each line, without the title. */
static const char *tree(const char *paths, const char *contexts, bool utf8)
{
    static char cut[4096];
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(table_done) struct table t = {0};
    struct sg_error e = {0};
    json_t *p = json_loads(paths, 0, NULL), *c = json_loads(contexts, 0, NULL);
    char *to = cut;

    cut[0] = '\0';
    setlocale(LC_CTYPE, "C.UTF-8");
    strbuf_init(&out, 1u << 20);
    EXPECT(p && c);
    EXPECT(ctx_tree_rows(p, c, utf8 ? TREE_UTF8 : 0, &t, &e) == 0);
    table_format(&t, &out, 0, false);
    json_decref(p);
    json_decref(c);
    /* Three blanks end a column, unless they are of the tree itself. */
    for (const char *line = strchr(out.buf, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        const char *end = strstr(line, "   ");
        while (end && strspn(line, " |`\xe2\x94\x82") >= (size_t)(end - line) + 3)
            end = strstr(end + 1, "   ");
        const char *status = end ? end + strspn(end, " ") : line;
        to += snprintf(to, (size_t)(cut + sizeof(cut) - to), "%.*s [%.*s]\n",
                       end ? (int)(end - line) : 0, line, (int)strcspn(status, " "), status);
    }
    return cut;
}

TEST(a_tree_has_children_below_their_parents)
{
    static const char paths[] =
        "[{\"pathId\":\"main\",\"parentPathId\":null,\"contextId\":\"x\",\"sandboxStatus\":"
        "\"ready\"},"
        "{\"pathId\":\"a\",\"parentPathId\":\"main\",\"contextId\":null},"
        "{\"pathId\":\"b\",\"parentPathId\":\"main\",\"mergedInto\":\"main\",\"contextId\":null},"
        "{\"pathId\":\"c\",\"parentPathId\":\"a\",\"contextId\":\"y\",\"sandboxStatus\":"
        "\"creating\"},"
        "{\"pathId\":\"other\",\"parentPathId\":null,\"contextId\":null}]";

    EXPECT_STR(tree(paths, "[]", false), "main [ready]\n"
                                         "|- a [lazy]\n"
                                         "|  `- c [creating]\n"
                                         "`- b -> main [merged]\n"
                                         "other [lazy]\n");
    EXPECT_STR(tree(paths, "[]", true), "main [ready]\n"
                                        "├─ a [lazy]\n"
                                        "│  └─ c [creating]\n"
                                        "└─ b → main [merged]\n"
                                        "other [lazy]\n");
}

TEST(a_tree_of_nonsense_shows_each_path_once)
{
    EXPECT_STR(tree("[{\"pathId\":\"a\",\"parentPathId\":\"b\"},{\"pathId\":\"b\","
                    "\"parentPathId\":\"a\"},{\"pathId\":\"c\",\"parentPathId\":\"c\"},"
                    "{\"pathId\":\"d\",\"parentPathId\":\"gone\"}]",
                    "[]", false),
               "c [lazy]\n"
               "d [lazy]\n"
               "a [lazy]\n"
               "`- b [lazy]\n");
    EXPECT_STR(tree("[{\"pathId\":\"\\u001b[31m\"}]", "[]", false), "?[31m [lazy]\n");
    tree("[7, {}, null, {\"pathId\": 1}]", "[8, {\"id\": []}]", false);
    EXPECT_STR(tree("[]", "[]", false), "");
}

TEST(a_deep_tree_is_shown_and_a_huge_list_refused)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(table_done) struct table t = {0}, more = {0};
    struct sg_error e = {0};
    json_t *paths = json_array(), *none = json_array();

    for (int i = 0; i < 2000; i++) {
        json_t *p = json_pack("{s:o}", "pathId", json_sprintf("%d", i));
        json_object_set_new(p, "parentPathId", json_sprintf("%d", i - 1));
        json_array_append_new(paths, p);
    }
    strbuf_init(&out, 256u << 20);
    EXPECT(ctx_tree_rows(paths, none, TREE_UTF8, &t, &e) == 0);
    table_format(&t, &out, 100, false);
    EXPECT(!out.truncated);
    json_array_append_new(paths, json_pack("{s:s}", "pathId", "x"));
    EXPECT(ctx_tree_rows(paths, none, TREE_UTF8, &more, &e) == -E2BIG);
    json_decref(paths);
    json_decref(none);
}

/* ---- the log --------------------------------------------------------------------------------- */

/* "ID<PARENT" for each, '*' after the one that is current; messages are "m" and the id. */
static json_t *checkpoints_of(const char *text)
{
    AUTO(free_p) char *copy = xstrdup(text);
    json_t *list = json_array();

    for (char *p = copy, *word; (word = strsep(&p, " "));) {
        size_t len = strcspn(word, "<*");
        bool current = strchr(word, '*') != NULL;
        json_t *one = json_pack("{s:o, s:o, s:i, s:b, s:b}", "messageId",
                                json_sprintf("m%.*s", (int)len, word), "checkpointId",
                                json_sprintf("%.*s", (int)len, word), "memoryBytes", 1 << 20,
                                "kernels", 1, "current", current);

        if (word[len] == '<')
            json_object_set_new(one, "parentId", json_sprintf("%.1s", word + len + 1));
        json_array_append_new(list, one);
    }
    return list;
}

static void expect_rows(json_t *list, const char *expected)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    AUTO(table_done) struct table t = {0};
    struct sg_error e = {0};

    setlocale(LC_CTYPE, "C.UTF-8");
    strbuf_init(&out, 1u << 20);
    EXPECT(ctx_log_rows(list, 0, &t, &e) == 0);
    table_format(&t, &out, 0, false);
    EXPECT_STR(out.buf, expected);
    json_decref(list);
}

TEST(a_log_is_straight_until_it_branches)
{
    expect_rows(checkpoints_of("1 2<1 3<2*"), "    MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
                                              "    m1        1            -       1 MiB   yes\n"
                                              "    m2        2            -       1 MiB   yes\n"
                                              "*   m3        3            -       1 MiB   yes\n");
    expect_rows(checkpoints_of("1 2<1 3<2 4<1 5<4*"),
                "    MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
                "    m1        1            -       1 MiB   yes\n"
                "    |- m2     2            -       1 MiB   yes\n"
                "    |  m3     3            -       1 MiB   yes\n"
                "    `- m4     4            -       1 MiB   yes\n"
                "*      m5     5            -       1 MiB   yes\n");
}

TEST(a_log_whose_first_ones_were_thinned_out)
{
    expect_rows(checkpoints_of("5<1 6<2 7<6"), "MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
                                               "|- m5     5            -       1 MiB   yes\n"
                                               "`- m6     6            -       1 MiB   yes\n"
                                               "   m7     7            -       1 MiB   yes\n");
}

TEST(a_log_of_nonsense)
{
    expect_rows(json_array(), "MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n");
    expect_rows(json_pack("[{}, n, i]", 7), "MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
                                            "|- -                   -         0 B   files only\n"
                                            "|- -                   -         0 B   files only\n"
                                            "`- -                   -         0 B   files only\n");
    expect_rows(checkpoints_of("1<2 2<1"), "MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
                                           "m1        1            -       1 MiB   yes\n"
                                           "m2        2            -       1 MiB   yes\n");
}
