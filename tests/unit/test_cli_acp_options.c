/* The command line of `sandglass acp`. */
#include "tap.h"

#include "cli/local/acp_options.h"

TAP_MAIN

#define ARGS_MAX 80

static struct acp_options o;
static struct sg_error e;

static int parse(const char *const *args)
{
    static char copies[ARGS_MAX][256];
    static char *argv[ARGS_MAX + 1];
    int argc = 1;

    acp_options_done(&o);
    e = (struct sg_error){0};
    snprintf(copies[0], sizeof(copies[0]), "acp");
    argv[0] = copies[0];
    for (; *args; args++, argc++) {
        snprintf(copies[argc], sizeof(copies[0]), "%s", *args);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    return acp_options_parse(argc, argv, &o, &e);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

#define REFUSED(piece, ...)                                                            \
    do {                                                                               \
        EXPECT(PARSE(__VA_ARGS__) < 0);                                                \
        if (!strstr(e.message, piece)) {                                               \
            tap_failures++;                                                            \
            printf("# line %d: '%s' does not say '%s'\n", __LINE__, e.message, piece); \
        }                                                                              \
    } while (0)

TEST(the_command_follows_two_dashes)
{
    EXPECT(PARSE("--", "agent", "--acp", "--", "-h") == 0);
    EXPECT_STR(o.command[0], "agent");
    EXPECT_STR(o.command[1], "--acp");
    EXPECT_STR(o.command[2], "--");
    EXPECT_STR(o.command[3], "-h");
    EXPECT(!o.command[4] && !o.cage.help);
    EXPECT(o.cage.timeout_ms == 3600000);
    EXPECT(o.cage.network.mode == SG_NETWORK_BLOCK);
    REFUSED("no agent", "--serve-fs");
    REFUSED("no agent", "--");
    REFUSED("unexpected argument 'agent'", "agent");
    EXPECT(PARSE("-h") == 0 && o.cage.help);
}

TEST(all_options)
{
    EXPECT(PARSE("--template", "base", "-s", "src", "--into", "~/x", "--serve-fs", "--timeout",
                 "2h", "--log", "-", "-m", "64M", "-e", "A=b", "-u", "root", "-q", "--", "a") == 0);
    EXPECT_STR(o.source, "src");
    EXPECT_STR(o.into, "~/x");
    EXPECT_STR(o.log, "-");
    EXPECT_STR(o.cage.user, "root");
    EXPECT(o.serve_fs && o.cage.quiet && o.cage.timeout_ms == 7200000 && o.cage.env.n == 1);
    REFUSED("a server's", "--template", "mine", "--", "a");
    REFUSED("--into is for", "--into", "x", "--", "a");
    REFUSED("twice", "-s", "a", "-s", "b", "--", "a");
    REFUSED("path is empty", "-s", "", "--", "a");
    REFUSED("unknown option '--json'", "--json", "--", "a");
}

TEST(secrets)
{
    EXPECT(PARSE("--secret", "KEY@api.test", "--secret", "A=B@*.x.test,y.test", "--", "a") == 0);
    EXPECT(o.n_secrets == 2);
    EXPECT_STR(o.secrets[0].name, "KEY");
    EXPECT_STR(o.secrets[0].variable, "KEY");
    EXPECT_STR(o.secrets[0].hosts[0], "api.test");
    EXPECT_STR(o.secrets[1].name, "A");
    EXPECT_STR(o.secrets[1].variable, "B");
    EXPECT_STR(o.secrets[1].hosts[1], "y.test");
    EXPECT(!o.secrets[1].hosts[2]);
    /* where they may go, and nowhere else */
    EXPECT(o.cage.network.mode == SG_NETWORK_LIST);
    EXPECT_STR(o.cage.network.allow[0], "api.test");
    EXPECT_STR(o.cage.network.allow[2], "y.test");
    EXPECT(PARSE("--network", "allow", "--secret", "K@api.test", "--", "a") == 0);
    EXPECT(o.cage.network.mode == SG_NETWORK_ALLOW);
}

/* What was given may be the secret itself. */
TEST(bad_secrets_are_not_shown)
{
    static const char *const bad[] = {
        "hunter2",          "hunter2@", "hunter 2@api.test", "K=hunter2!@a.test", "K@hunter2",
        "K@a.test,,b.test", "@a.test",  "K@1.2.3.4",         "1K@a.test",         "K@a.test:443"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        REFUSED("--secret", "--secret", bad[i], "--", "a");
        EXPECT(!strstr(e.message, "hunter"));
    }
    REFUSED("twice", "--secret", "K@a.test", "--secret", "K@b.test", "--", "a");
    REFUSED("both by", "-e", "K=1", "--secret", "K@b.test", "--", "a");
    REFUSED("needs a network", "--network", "block", "--secret", "K@b.test", "--", "a");
}

TEST(not_without_end)
{
    const char *args[2 * (ACP_SECRETS_MAX + 1) + 3];
    static char texts[ACP_SECRETS_MAX + 1][32];
    size_t n = 0;

    for (size_t i = 0; i <= ACP_SECRETS_MAX; i++) {
        snprintf(texts[i], sizeof(texts[i]), "K%zu@a.test", i);
        args[n++] = "--secret";
        args[n++] = texts[i];
    }
    args[n++] = "--";
    args[n++] = "a";
    args[n] = NULL;
    EXPECT(parse(args) == -E2BIG);
    acp_options_done(&o);
}
