/* Command lines of the verbs that talk to a server: what they mean and what they refuse. */
#include "tap.h"

#include "cli/shared/env_list.h"
#include "cli/client/client.h"
#include "cli/client/create.h"
#include "cli/client/exec.h"
#include "cli/client/repl_options.h"

TAP_MAIN

#define ARGS_MAX 16

/* Splits a line at its blanks and gives it to the verb. */
static int parse(const struct client_verb *verb, void *options, const char *line,
                 struct sg_error *e)
{
    static char text[512];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;

    snprintf(text, sizeof(text), "%s %s", verb->name, line);
    memset(argv, 0, sizeof(argv));
    for (char *p = text, *word; (word = strsep(&p, " ")) && argc < ARGS_MAX;)
        if (*word)
            argv[argc++] = word;
    return client_parse(verb, argc, argv, options, e);
}

static void expect_refused(const struct client_verb *verb, const char *line, const char *words)
{
    AUTO(free_p) void *options = xcalloc(1, verb->options_size);
    struct sg_error e = {0};

    EXPECT(parse(verb, options, line, &e) < 0);
    if (!strstr(e.message, words))
        printf("# %s %s: '%s' does not say '%s'\n", verb->name, line, e.message, words);
    EXPECT(strstr(e.message, words) != NULL);
}

static void expect_taken(const struct client_verb *verb, const char *line)
{
    AUTO(free_p) void *options = xcalloc(1, verb->options_size);
    struct sg_error e = {0};

    EXPECT(parse(verb, options, line, &e) == 0);
    EXPECT_STR(e.message, "");
}

/* ---- exec ------------------------------------------------------------------------------------ */

static void expect_command(const char *line, const char *id, const char *command)
{
    struct exec_options o = {0};
    struct sg_error e = {0};
    char joined[256] = "";

    EXPECT(parse(&exec_verb, &o, line, &e) == 0);
    EXPECT_STR(e.message, "");
    for (char **arg = o.command; arg && *arg; arg++) {
        size_t len = strlen(joined);

        snprintf(joined + len, sizeof(joined) - len, "%s%s", len ? " " : "", *arg);
    }
    EXPECT_STR(o.id ? o.id : "", id);
    EXPECT_STR(joined, command);
    env_list_done(&o.env);
}

TEST(a_command_keeps_its_options)
{
    expect_command("iabc ls -la /", "iabc", "ls -la /");
    expect_command("-it iabc bash", "iabc", "bash");
    expect_command("iabc -u root ls -u x --help", "iabc", "ls -u x --help");
    expect_command("iabc -- ls -la", "iabc", "ls -la");
    expect_command("--env A=1 iabc -e B=2 -- -strange", "iabc", "-strange");
    expect_command("iabc sh -c x -- y", "iabc", "sh -c x -- y");
}

TEST(options_of_exec)
{
    struct exec_options o = {0};

    EXPECT(parse(&exec_verb, &o, "-it -u root -w /tmp -e A=1 --timeout 1.5s iabc sh", NULL) == 0);
    EXPECT(o.interactive && o.tty && !o.detach);
    EXPECT_STR(o.user, "root");
    EXPECT_STR(o.cwd, "/tmp");
    EXPECT(o.timeout_ms == 1500);
    EXPECT(o.env.n == 1 && strcmp(o.env.v[0], "A=1") == 0);
    env_list_done(&o.env);
}

TEST(bad_exec)
{
    expect_refused(&exec_verb, "", "no sandbox given");
    expect_refused(&exec_verb, "iabc", "no command given");
    expect_refused(&exec_verb, "iabc --", "no command given");
    expect_refused(&exec_verb, "-- iabc ls", "no sandbox given");
    expect_refused(&exec_verb, "../x ls", "is not the id of a sandbox");
    expect_refused(&exec_verb, "-d -t iabc ls", "--detach");
    expect_refused(&exec_verb, "-d --timeout 5s iabc ls", "--detach");
    expect_refused(&exec_verb, "--timeout 0 iabc ls", "--timeout");
    expect_refused(&exec_verb, "--timeout soon iabc ls", "--timeout");
    expect_refused(&exec_verb, "-u a:b iabc ls", "--user");
    expect_refused(&exec_verb, "--interactiv iabc ls", "did you mean '--interactive'");
}

/* ---- link ------------------------------------------------------------------------------------ */

TEST(arguments_of_link)
{
    expect_taken(&link_verb, "iabc 3000");
    expect_taken(&link_verb, "--for 15m iabc 3000 --json");
    expect_refused(&link_verb, "", "no sandbox given");
    expect_refused(&link_verb, "iabc", "no port given");
    expect_refused(&link_verb, "iabc 0", "port");
    expect_refused(&link_verb, "iabc 65536", "port");
    expect_refused(&link_verb, "iabc 80 81", "one argument too many");
    expect_refused(&link_verb, "--for 31d iabc 80", "between 1s and 30d");
    expect_refused(&link_verb, "../x 80", "is not the id of a sandbox");
}

/* ---- create ---------------------------------------------------------------------------------- */

TEST(options_of_create)
{
    struct create_options o = {0};

    EXPECT(parse(&create_verb, &o,
                 "--timeout 90 -m a=1 --name sandbox -m a=2 --auto-pause -e X=y tpl", NULL) == 0);
    EXPECT_STR(o.template, "tpl");
    EXPECT(o.timeout_s == 90 && o.auto_pause);
    EXPECT(o.n_metadata == 2);
    EXPECT_STR(o.metadata[0], "a=2");
    EXPECT_STR(o.metadata[1], "name=sandbox");
    create_options_done(&o);
}

TEST(times_of_create)
{
    struct create_options o = {0};

    EXPECT(parse(&create_verb, &o, "--timeout 1500ms", NULL) == 0 && o.timeout_s == 2);
    EXPECT(parse(&create_verb, &o, "--timeout 1ms", NULL) == 0 && o.timeout_s == 1);
    EXPECT(parse(&create_verb, &o, "--timeout 2h", NULL) == 0 && o.timeout_s == 7200);
    expect_refused(&create_verb, "--timeout 0", "between 1s and 366d");
    expect_refused(&create_verb, "--timeout 400d", "between 1s and 366d");
}

TEST(bad_create)
{
    expect_refused(&create_verb, "-m novalue", "is not KEY=VALUE");
    expect_refused(&create_verb, "-m =v", "is not KEY=VALUE");
    expect_refused(&create_verb, "-e 1X=2", "expected NAME=value");
    expect_refused(&create_verb, "a b", "unexpected argument 'b'");
}

/* ---- repl ------------------------------------------------------------------------------------ */

TEST(options_of_repl)
{
    struct repl_options o = {0}, plain = {0};

    EXPECT(parse(&repl_verb, &plain, "", NULL) == 0);
    EXPECT(!plain.id && !plain.timeout_s && !plain.keep);
    EXPECT_STR(plain.language, "python");
    EXPECT(parse(&repl_verb, &o, "-l js --timeout 1h --keep --no-color -e A=1", NULL) == 0);
    EXPECT_STR(o.language, "js");
    EXPECT(o.timeout_s == 3600 && o.keep && o.no_colour && !o.json && o.env.n == 1);
    env_list_done(&o.env);
    expect_taken(&repl_verb, "iabc --json --timeout 5m");
    expect_refused(&repl_verb, "iabc idef", "unexpected argument 'idef'");
    expect_refused(&repl_verb, "../x", "is not the id of a sandbox");
    expect_refused(&repl_verb, "--language ../x", "--language '../x'");
    expect_taken(&repl_verb, "--no-checkpoints -c k1 iabc");
    expect_refused(&repl_verb, "-c k1", "--context is of a sandbox");
    expect_refused(&repl_verb, "-c ../x iabc", "--context '../x'");
    expect_refused(&repl_verb, "-c k1 -l python iabc", "--context has its language");
    expect_refused(&repl_verb, "--timeout 0", "--timeout");
}

TEST(variables_are_for_a_new_sandbox)
{
    struct repl_options o = {0};
    struct sg_error e = {0};

    EXPECT(parse(&repl_verb, &o, "-e A=1 iabc", &e) < 0);
    EXPECT(strstr(e.message, "--env is for a new sandbox") != NULL);
    env_list_done(&o.env);
}

/* ---- the others ------------------------------------------------------------------------------ */

TEST(ids_on_the_command_line)
{
    expect_taken(&kill_verb, "iabc idef");
    expect_taken(&kill_verb, "--all");
    expect_taken(&kill_verb, "-q -- iabc");
    expect_refused(&kill_verb, "", "no sandbox given");
    expect_refused(&kill_verb, "--all iabc", "both --all and ids");
    expect_refused(&kill_verb, "-- -q", "is not the id of a sandbox");
    expect_refused(&pause_verb, "", "no sandbox given");
    expect_refused(&pause_verb, "--all", "unknown option '--all'");
    expect_taken(&resume_verb, "iabc --timeout 1h");
    expect_taken(&top_verb, "");
    expect_taken(&top_verb, "--once iabc");
    expect_refused(&top_verb, "a/b", "is not the id of a sandbox");
}

TEST(options_of_mcp)
{
    expect_taken(&mcp_verb, "");
    expect_taken(&mcp_verb, "--conversation chat-1 -p main");
    expect_refused(&mcp_verb, "--path=", "--path: give 1 to 256 bytes");
    expect_refused(&mcp_verb, "chat-1", "unexpected argument");
}

TEST(options_of_ps)
{
    expect_taken(&ps_verb, "--state running -m a=b -m c=d -q");
    expect_refused(&ps_verb, "--state gone", "--state 'gone' is not running or paused");
    expect_refused(&ps_verb, "-m a", "is not KEY=VALUE");
    expect_refused(&ps_verb, "iabc", "unexpected argument");
}

TEST(options_of_logs)
{
    expect_taken(&logs_verb, "-f --level warn --since 5m iabc");
    expect_taken(&logs_verb, "--since 2026-03-01T12:00:00Z iabc");
    expect_refused(&logs_verb, "", "no sandbox given");
    expect_refused(&logs_verb, "--level loud iabc", "--level 'loud'");
    expect_refused(&logs_verb, "--since today iabc", "--since 'today' is not a time");
    expect_refused(&logs_verb, "iabc idef", "unexpected argument 'idef'");
    expect_taken(&logs_verb, "--layer code iabc");
    expect_taken(&logs_verb,
                 "--server -f -n 10 --level warn --layer client --request r --sandbox iabc "
                 "--since 5m --json --state /tmp");
    expect_refused(&logs_verb, "--layer kernel iabc", "--layer 'kernel' is not code, agent");
    expect_refused(&logs_verb, "--server iabc", "--server is about all sandboxes");
    expect_refused(&logs_verb, "--lines 5 iabc", "go with --server");
    expect_refused(&logs_verb, "--server --lines 0", "--lines '0'");
    expect_refused(&logs_verb, "--server --sandbox ../x", "is not the id of a sandbox");
}

TEST(options_of_fork)
{
    expect_taken(&fork_verb, "iabc");
    expect_taken(&fork_verb, "-n 100 --inherit replay --wait 0 --timeout 1h -v --json iabc");
    expect_taken(&fork_verb, "iabc --count 1 --wait 10m --inherit files");
    expect_refused(&fork_verb, "", "no sandbox given");
    expect_refused(&fork_verb, "../x", "is not the id of a sandbox");
    expect_refused(&fork_verb, "iabc idef", "unexpected argument 'idef': fork takes one sandbox");
    expect_refused(&fork_verb, "-n 0 iabc", "--count '0'");
    expect_refused(&fork_verb, "-n 101 iabc", "--count '101'");
    expect_refused(&fork_verb, "-n many iabc", "--count 'many'");
    expect_refused(&fork_verb, "--inherit all iabc", "--inherit 'all' is not state, files or");
    expect_refused(&fork_verb, "--wait 11m iabc", "--wait '11m' is more than 10m");
    expect_refused(&fork_verb, "--timeout 0 iabc", "--timeout");
}

TEST(places_of_cp)
{
    expect_taken(&cp_verb, "a iabc:b");
    expect_taken(&cp_verb, "iabc:b -");
    expect_taken(&cp_verb, "-- -a iabc:b");
    expect_refused(&cp_verb, "a", "cp needs two places");
    expect_refused(&cp_verb, "a b", "neither 'a' nor 'b' is in a sandbox");
    expect_refused(&cp_verb, "ia:b ic:d", "both places are in sandboxes");
    expect_refused(&cp_verb, "a b c:d", "unexpected argument 'c:d'");
}

TEST(actions_of_volume)
{
    expect_taken(&volume_verb, "ls -q");
    expect_taken(&volume_verb, "create data");
    expect_taken(&volume_verb, "export data");
    expect_taken(&volume_verb, "import data");
    expect_taken(&volume_verb, "import data ./a/b.tar");
    expect_taken(&volume_verb, "rm a b c");
    expect_refused(&volume_verb, "", "no action given");
    expect_refused(&volume_verb, "tar data", "'tar' is not ls, create, export, import or rm");
    expect_refused(&volume_verb, "export", "export takes NAME");
    expect_refused(&volume_verb, "export a b", "unexpected argument 'b'");
    expect_refused(&volume_verb, "import a/b", "'a/b' is no name of a volume");
    expect_refused(&volume_verb, "export --json data", "--json is not an option of export");
}

TEST(every_verb_has_help_and_the_shared_options)
{
    EXPECT(client_n_verbs == 21);
    for (size_t i = 0; i < client_n_verbs; i++) {
        const struct client_verb *verb = client_verbs[i];
        AUTO(free_p) struct client_common *options = xcalloc(1, verb->options_size);

        EXPECT(parse(verb, options, "--url http://x --api-key-file f -h", NULL) == 0);
        EXPECT(options->help);
        EXPECT_STR(options->url, "http://x");
        EXPECT_STR(options->key_file, "f");
        expect_refused(verb, "--api-key-file=", "--api-key-file");
        expect_refused(verb, "--frobnicate", "unknown option");
    }
}
