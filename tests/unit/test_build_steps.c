/* Steps of a build: which are refused, what they say for those after them, their keys. */
#include "tap.h"

#include "front/builds/steps.h"
#include "front/core/defaults.h"
#include "lib/base/clock.h"

TAP_MAIN

static json_t *json(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    EXPECT(v != NULL);
    return v;
}

static void expect_refused(const char *steps, const char *words)
{
    struct sg_error e = {0};
    json_t *v = json(steps);

    EXPECT(steps_check(v, &e) == -EINVAL);
    if (!strstr(e.message, words))
        printf("# %s: '%s'\n", steps, e.message);
    EXPECT(strstr(e.message, words) != NULL);
    json_decref(v);
}

TEST(what_is_refused)
{
    struct sg_error e = {0};
    json_t *v = json("[{\"type\":\"RUN\",\"args\":[\"true\"],\"force\":true,\"gzip\":false},"
                     "{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"\",\"\"],\"filesHash\":\"x\"},"
                     "{\"type\":\"ENV\",\"args\":[\"A\",\"1\",\"B\",\"2\"]},"
                     "{\"type\":\"WORKDIR\",\"args\":[\"/x\"]},"
                     "{\"type\":\"USER\",\"args\":[\"user\",\"true\"]}]");

    EXPECT(steps_check(v, &e) == 0);
    json_decref(v);
    expect_refused("[{\"type\":\"CMD\",\"args\":[\"x\"]}]", "Invalid step 1: unknown type 'CMD'");
    expect_refused("[{\"type\":\"RUN\",\"args\":[]}]", "RUN has 0 arguments");
    expect_refused("[{\"type\":\"RUN\"}]", "RUN has 0 arguments");
    expect_refused("[{\"type\":\"RUN\",\"args\":[7]}]", "not a text");
    expect_refused("[{\"type\":\"ENV\",\"args\":[\"A\",\"1\",\"B\"]}]", "ENV has 3 arguments");
    expect_refused("[{\"type\":\"ENV\",\"args\":[\"A=B\",\"1\"]}]", "has no '='");
    expect_refused("[7]", "unknown type ''");
}

TEST(no_more_is_kept_than_is_read)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(1u << 20);
    json_t *v = json("[{\"type\":\"RUN\",\"args\":[\"a\"],\"force\":true,\"x\":[[],[],[]]}]"),
           *copy = steps_copy(v);
    struct sg_error e;

    json_decref(v);
    v = json("[{\"type\":\"RUN\",\"args\":[\"a\"],\"filesHash\":\"\",\"force\":true}]");
    EXPECT(json_equal(copy, v));
    json_decref(v);
    json_decref(copy);
    for (int step = 0; step < 11; step++) {
        strbuf_addstr(&text,
                      step ? "]},{\"type\":\"ENV\",\"args\":[" : "[{\"type\":\"ENV\",\"args\":[");
        for (int i = 0; i < 1000; i++)
            strbuf_addstr(&text, i ? ",\"a\"" : "\"a\"");
    }
    strbuf_addstr(&text, "]}]");
    v = json(text.buf);
    EXPECT(steps_check(v, &e) == -EINVAL);
    EXPECT(strstr(e.message, "at most 10000 arguments") != NULL);
    json_array_remove(v, 0);
    EXPECT(steps_check(v, &e) == 0);
    json_decref(v);
}

/* Applies steps one after the other. */
static int apply(struct step_state *state, const char *steps, struct sg_error *e)
{
    json_t *all = json(steps), *one;
    struct step s;
    size_t i;
    int r = 0;

    json_array_foreach(all, i, one)
    {
        EXPECT(step_read(one, &s, e) == 0);
        if (r == 0)
            r = step_apply(&s, state, e);
    }
    json_decref(all);
    return r;
}

static const char *env_of(const struct step_state *s, const char *name)
{
    const char *v = json_string_value(json_object_get(s->envs, name));

    return v ? v : "(none)";
}

TEST(variables)
{
    struct step_state s;
    struct sg_error e;

    step_state_init(&s, NULL);
    EXPECT(apply(&s,
                 "[{\"type\":\"ENV\",\"args\":[\"A\",\"one\",\"B\",\"$A-${A}-$NONE.$$A\"]},"
                 "{\"type\":\"ENV\",\"args\":[\"PATH\",\"/opt/bin:$PATH\",\"H\",\"$HOME\"]},"
                 "{\"type\":\"ENV\",\"args\":[\"C\",\"\\\\$A $(id) `id` ${A:-x} $1 $\"]}]",
                 &e) == 0);
    EXPECT_STR(env_of(&s, "B"), "one-one-.$one");
    EXPECT_STR(env_of(&s, "PATH"),
               "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    EXPECT_STR(env_of(&s, "H"), "/home/user");
    EXPECT_STR(env_of(&s, "C"), "$A $(id) `id` ${A:-x} $1 $");
    step_state_done(&s);
}

/* A client decides how many variables there are and how often they are named, so what a name costs
 * must not depend on how many there are. */
TEST(many_variables)
{
    enum { VARIABLES = 30000, NAMED = 200000, SECONDS = 5 };
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(NAMED * 4), out = strbuf_upto(16);
    struct step_state s;
    char name[16];

    step_state_init(&s, NULL);
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(name, sizeof(name), "v%x", (unsigned)i);
        json_object_set_new(s.envs, name, json_string(""));
    }
    for (int i = 0; i < NAMED; i++)
        strbuf_addstr(&text, "$zzz");
    uint64_t began = clock_ns();
    step_expand(&s, text.buf, &out);
    EXPECT(out.len == 0 && !out.truncated);
    EXPECT(clock_ns() - began < UINT64_C(1000000000) * SECONDS);
    step_state_done(&s);
}

TEST(user_and_directory)
{
    struct step_state s;
    struct sg_error e;

    step_state_init(&s, NULL);
    EXPECT_STR(s.user, "user");
    EXPECT(apply(&s,
                 "[{\"type\":\"WORKDIR\",\"args\":[\"app\"]},"
                 "{\"type\":\"WORKDIR\",\"args\":[\"sub\"]}]",
                 &e) == 0);
    EXPECT_STR(s.workdir, "/home/user/app/sub");
    EXPECT(apply(&s,
                 "[{\"type\":\"USER\",\"args\":[\"root\"]},"
                 "{\"type\":\"WORKDIR\",\"args\":[\"~/x\"]}]",
                 &e) == 0);
    EXPECT_STR(s.workdir, "/root/x");
    EXPECT(apply(&s, "[{\"type\":\"USER\",\"args\":[\"../app\"]}]", &e) == -EINVAL);
    EXPECT(strstr(e.message, "'../app' is no name of a user"));
    json_t *d = step_state_defaults(&s, "run", NULL);
    EXPECT_STR(defaults_user(d), "root");
    EXPECT_STR(defaults_workdir(d), "/root/x");
    EXPECT_STR(defaults_start(d), "run");
    EXPECT(!defaults_ready(d));
    step_state_done(&s);
    step_state_init(&s, d);
    EXPECT_STR(s.workdir, "/root/x");
    json_decref(d);
    step_state_done(&s);
}

/* The homes of other users are a sandbox's to tell. */
TEST(other_users)
{
    struct step_state s;
    struct sg_error e;

    step_state_init(&s, NULL);
    EXPECT_STR(s.home, "/home/user");
    EXPECT(apply(&s, "[{\"type\":\"USER\",\"args\":[\"root\"]}]", &e) == 0);
    EXPECT_STR(s.home, "/root");
    EXPECT(apply(&s, "[{\"type\":\"USER\",\"args\":[\"node\"]}]", &e) == 0);
    EXPECT_STR(s.user, "node");
    EXPECT_STR(s.home, "");
    snprintf(s.home, sizeof(s.home), "/home/node");
    EXPECT(apply(&s,
                 "[{\"type\":\"WORKDIR\",\"args\":[\"app\"]},"
                 "{\"type\":\"ENV\",\"args\":[\"W\",\"$USER $HOME $PWD\"]}]",
                 &e) == 0);
    EXPECT_STR(s.workdir, "/home/node/app");
    EXPECT_STR(env_of(&s, "W"), "node /home/node /home/node/app");
    json_t *d = step_state_defaults(&s, NULL, NULL);
    step_state_done(&s);
    step_state_init(&s, d);
    EXPECT_STR(s.user, "node");
    EXPECT_STR(s.home, "/home/node");
    json_decref(d);
    step_state_done(&s);
}

static void expect_copy(const char *args, const char *dest, const char *owner, uint32_t mode,
                        uint32_t strip)
{
    char text[512], told[80];
    struct step_state state;
    struct step_copy c;
    struct step s;
    struct sg_error e;

    step_state_init(&state, NULL);
    snprintf(text, sizeof(text), "{\"type\":\"COPY\",\"args\":%s}", args);
    json_t *v = json(text);
    EXPECT(step_read(v, &s, &e) == 0);
    EXPECT(step_copy(&s, &state, &c, &e) == 0);
    snprintf(told, sizeof(told), "%s:%s", c.user, c.group);
    EXPECT_STR(c.dest, dest);
    EXPECT_STR(told, owner);
    if (c.mode != mode || c.strip != strip)
        printf("# %s: mode %o, strip %u\n", args, c.mode, c.strip);
    EXPECT(c.mode == mode && c.strip == strip);
    json_decref(v);
    step_state_done(&state);
}

TEST(copies)
{
    expect_copy("[\"app\",\"/app/\",\"user:root\",\"0755\"]", "/app/", "user:root", 0755, 1);
    expect_copy("[\"./a/b.txt\",\"x\",\"\",\"\"]", "/home/user/x", "user:", UNPACK_OWN_MODE, 2);
    expect_copy("[\".\",\".\"]", "/home/user/./", "user:", UNPACK_OWN_MODE, 0);
    expect_copy("[\"*.txt\",\"/etc/x\",\"root\"]", "/etc/x/", "root:", UNPACK_OWN_MODE, 1);
    expect_copy("[\"f\",\"/x\",\"1000:www-data\"]", "/x", "1000:www-data", UNPACK_OWN_MODE, 1);
    expect_copy("[\"f\",\"/x\",\":adm\"]", "/x", "user:adm", UNPACK_OWN_MODE, 1);
}

static const char *key_of(const char *below, const char *step, const char *digest)
{
    static char ret[4][STORE_KEY_HEX + 1];
    static unsigned n;
    char *to = ret[n++ % 4];
    struct step s;
    struct sg_error e;
    json_t *v = json(step);

    EXPECT(step_read(v, &s, &e) == 0);
    step_key(below, &s, digest, to);
    json_decref(v);
    return to;
}

TEST(keys)
{
    const char *run = "{\"type\":\"RUN\",\"args\":[\"a b\"]}";
    char base[STORE_KEY_HEX + 1], other[STORE_KEY_HEX + 1];
    json_t *d = json("{\"user\":\"root\"}");

    EXPECT_STR(key_of("k", run, ""), key_of("k", run, ""));
    EXPECT(strlen(key_of("k", run, "")) == STORE_KEY_HEX);
    EXPECT(strcmp(key_of("k", run, ""), key_of("j", run, "")) != 0);
    EXPECT(strcmp(key_of("k", run, ""), key_of("k", run, "digest")) != 0);
    EXPECT(strcmp(key_of("k", run, ""),
                  key_of("k", "{\"type\":\"RUN\",\"args\":[\"a\",\"b\"]}", "")) != 0);
    EXPECT_STR(key_of("k", run, ""),
               key_of("k", "{\"type\":\"RUN\",\"args\":[\"a b\"],\"force\":true}", ""));
    step_base_key("base", "", NULL, base);
    step_base_key("base", "", d, other);
    EXPECT(strcmp(base, other) != 0);
    step_base_key("base", "layer", NULL, other);
    EXPECT(strcmp(base, other) != 0);
    json_decref(d);
}
