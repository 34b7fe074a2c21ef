/* The command line of `sandglass run`: what is understood, and what each mistake is answered with.
 */
#include "tap.h"

#include <limits.h>
#include <unistd.h>

#include "cli/local/run_options.h"
#include "lib/command/suggest.h"

TAP_MAIN

#define ARGS_MAX 16

static struct run_options o;
static struct sg_error e;

/* Parses a NULL-terminated list of arguments into o and e. */
static int parse(const char *const *args)
{
    static char copies[ARGS_MAX][256];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;

    run_options_done(&o);
    e = (struct sg_error){0};
    snprintf(copies[argc], sizeof(copies[0]), "run");
    argv[argc] = copies[argc];
    argc++;
    for (; *args; args++, argc++) {
        snprintf(copies[argc], sizeof(copies[0]), "%s", *args);
        argv[argc] = copies[argc];
    }
    argv[argc] = NULL;
    return run_options_parse(argc, argv, &o, &e);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

/* The arguments are refused, and the message has all of these pieces. */
#define REFUSED(piece, ...)                                                            \
    do {                                                                               \
        EXPECT(PARSE(__VA_ARGS__) < 0);                                                \
        if (!strstr(e.message, piece)) {                                               \
            tap_failures++;                                                            \
            printf("# line %d: '%s' does not say '%s'\n", __LINE__, e.message, piece); \
        }                                                                              \
        EXPECT(!strchr(e.message, '\n'));                                              \
    } while (0)

TEST(code_is_an_argument)
{
    EXPECT(PARSE("print(1)") == 0);
    EXPECT(o.source == RUN_SOURCE_CODE);
    EXPECT_STR(o.source_text, "print(1)");
    EXPECT(o.language == SG_PYTHON);
    EXPECT(!o.language_given);
    EXPECT(o.cage.timeout_ms == 30000);
}

TEST(options_may_follow_the_code)
{
    EXPECT(PARSE("print(1)", "--json", "--memory", "64M") == 0);
    EXPECT(o.json);
    EXPECT(o.cage.limits.memory_bytes == 64u << 20);
}

TEST(sources)
{
    EXPECT(PARSE("-f", "main.js") == 0);
    EXPECT(o.source == RUN_SOURCE_FILE);
    EXPECT_STR(o.source_text, "main.js");
    EXPECT(PARSE("-") == 0);
    EXPECT(o.source == RUN_SOURCE_STDIN);
    EXPECT(PARSE("--file=-") == 0);
    EXPECT(o.source == RUN_SOURCE_STDIN);
    EXPECT(PARSE("--", "ls", "--json", "-l") == 0);
    EXPECT(o.source == RUN_SOURCE_COMMAND);
    EXPECT(!o.json);
    EXPECT_STR(o.command[0], "ls");
    EXPECT_STR(o.command[2], "-l");
    EXPECT(o.command[3] == NULL);
}

TEST(exactly_one_source)
{
    EXPECT(parse((const char *const[]){NULL}) < 0);
    EXPECT(strstr(e.message, "nothing to run") != NULL);
    REFUSED("put quotes around it", "print(1)", "print(2)");
    REFUSED("give one", "-f", "a.py", "print(2)");
    REFUSED("give one", "-f", "a.py", "-f", "b.py");
    REFUSED("give one", "print(1)", "--", "ls");
    REFUSED("no command", "--");
    REFUSED("empty", "--file=");
}

TEST(spellings_of_options)
{
    EXPECT(PARSE("--language", "bash", "x") == 0);
    EXPECT(o.language == SG_BASH && o.language_given);
    EXPECT(PARSE("--language=bash", "x") == 0);
    EXPECT(o.language == SG_BASH);
    EXPECT(PARSE("-l", "js", "x") == 0);
    EXPECT(o.language == SG_JAVASCRIPT);
    EXPECT(PARSE("-lts", "x") == 0);
    EXPECT(o.language == SG_TYPESCRIPT);
    EXPECT(PARSE("-qt", "x") == 0);
    EXPECT(o.cage.quiet && o.tty);
    EXPECT(PARSE("-qtlbash", "x") == 0);
    EXPECT(o.cage.quiet && o.tty && o.language == SG_BASH);
}

TEST(misspelt_options)
{
    REFUSED("did you mean '--memory'?", "--memry", "64M", "x");
    REFUSED("did you mean '--timeout'?", "--time-out=3", "x");
    REFUSED("unknown option '--zzzzzzz'", "--zzzzzzz", "x");
    REFUSED("unknown option '-z'", "-z", "x");
    REFUSED("--timeout needs a value", "x", "--timeout");
    REFUSED("-l needs a value", "x", "-l");
    REFUSED("--json takes no value", "--json=yes", "x");
}

TEST(unknown_language)
{
    REFUSED("cobol", "--language", "cobol", "x");
    REFUSED("--language is for code", "-l", "bash", "--", "ls");
}

TEST(timeout)
{
    EXPECT(PARSE("--timeout", "500ms", "x") == 0 && o.cage.timeout_ms == 500);
    EXPECT(PARSE("--timeout", "30s", "x") == 0 && o.cage.timeout_ms == 30000);
    EXPECT(PARSE("--timeout", "5m", "x") == 0 && o.cage.timeout_ms == 300000);
    EXPECT(PARSE("--timeout", "1h", "x") == 0 && o.cage.timeout_ms == 3600000);
    EXPECT(PARSE("--timeout", "2", "x") == 0 && o.cage.timeout_ms == 2000);
    EXPECT(PARSE("--timeout", "24h", "x") == 0);
    REFUSED("between 1ms and 24h", "--timeout", "0", "x");
    REFUSED("between 1ms and 24h", "--timeout", "25h", "x");
    REFUSED("'-5'", "--timeout", "-5", "x");
    REFUSED("'soon'", "--timeout", "soon", "x");
}

TEST(sizes)
{
    EXPECT(PARSE("--memory", "16M", "--disk", "1M", "--output-limit", "1", "x") == 0);
    EXPECT(o.cage.limits.memory_bytes == 16u << 20);
    EXPECT(o.cage.limits.disk_bytes == 1u << 20);
    EXPECT(o.output_limit == 1);
    EXPECT(PARSE("--memory", "2G", "--output-limit", "1G", "x") == 0);
    EXPECT(o.cage.limits.memory_bytes == 2ull << 30);
    REFUSED("between 16 MiB and 1 TiB", "--memory", "15M", "x");
    REFUSED("between 16 MiB and 1 TiB", "--memory", "2T", "x");
    REFUSED("'64Q'", "--memory", "64Q", "x");
    REFUSED("'-1'", "--memory", "-1", "x");
    REFUSED("--disk '512K'", "--disk", "512K", "x");
    REFUSED("--output-limit '0'", "--output-limit", "0", "x");
    REFUSED("--output-limit '2G'", "--output-limit", "2G", "x");
}

TEST(counts)
{
    EXPECT(PARSE("--pids", "1", "--cpus", "0.01", "x") == 0);
    EXPECT(o.cage.limits.pids == 1 && o.cage.limits.cpus_milli == 10);
    EXPECT(PARSE("--pids", "32768", "--cpus", "2.5", "x") == 0);
    EXPECT(o.cage.limits.pids == 32768 && o.cage.limits.cpus_milli == 2500);
    REFUSED("--pids", "--pids", "0", "x");
    REFUSED("--pids", "--pids", "32769", "x");
    REFUSED("--cpus '0'", "--cpus", "0", "x");
    REFUSED("--cpus '1025'", "--cpus", "1025", "x");
}

TEST(mounts)
{
    EXPECT(PARSE("--mount", "/srv/a:/a", "-v", "b:/b:rw", "--mount=/c:/c:ro", "x") == 0);
    EXPECT(o.cage.n_mounts == 3);
    EXPECT_STR(o.cage.mounts[0].source, "/srv/a");
    EXPECT_STR(o.cage.mounts[0].target, "/a");
    EXPECT(!o.cage.mounts[0].writable);
    EXPECT_STR(o.cage.mounts[1].source, "b"); /* as it was written: errors name it */
    EXPECT_STR(o.cage.mounts[1].target, "/b");
    EXPECT(o.cage.mounts[1].writable);
    EXPECT(!o.cage.mounts[2].writable);
}

TEST(bad_mounts)
{
    REFUSED("SRC:DST[:ro|rw]", "--mount", "/srv/a", "x");
    REFUSED("SRC:DST[:ro|rw]", "--mount", ":/a", "x");
    REFUSED("absolute path as its target", "--mount", "/srv/a:", "x");
    REFUSED("absolute path as its target", "--mount", "/srv/a:b", "x");
    REFUSED("other than ro and rw", "--mount", "/srv/a:/b:rx", "x");
    REFUSED("other than ro and rw", "--mount", "/srv/a:/b:", "x");
}

TEST(environment)
{
    setenv("SG_TEST_COPIED", "from outside", 1);
    EXPECT(PARSE("-e", "A=1", "--env", "SG_TEST_COPIED", "-eA=2", "--env-file", "f", "x") == 0);
    EXPECT(o.cage.env.n == 2);
    EXPECT_STR(o.cage.env.v[0], "A=2");
    EXPECT_STR(o.cage.env.v[1], "SG_TEST_COPIED=from outside");
    EXPECT(o.cage.env.v[2] == NULL);
    EXPECT(o.cage.env_files.n == 1);
    EXPECT_STR(o.cage.env_files.at[0], "f");
    REFUSED("'SG_TEST_ABSENT' is not set", "--env", "SG_TEST_ABSENT", "x");
    REFUSED("NAME=value", "--env", "1A=x", "x");
    REFUSED("NAME=value", "--env", "=x", "x");
}

TEST(secrets_stay_out_of_messages)
{
    EXPECT(PARSE("--env", "TO KEN=hunter2", "x") < 0);
    EXPECT(!strstr(e.message, "hunter2"));
}

TEST(names_and_paths)
{
    EXPECT(PARSE("-u", "root", "-w", "/tmp", "--hostname", "sandbox-1", "x") == 0);
    EXPECT_STR(o.cage.user, "root");
    EXPECT_STR(o.cage.cwd, "/tmp");
    EXPECT_STR(o.cage.hostname, "sandbox-1");
    REFUSED("--user 'a/b'", "--user", "a/b", "x");
    REFUSED("--user ''", "--user", "", "x");
    REFUSED("--cwd 'tmp' is not an absolute path", "--cwd", "tmp", "x");
    REFUSED("--hostname 'a b'", "--hostname", "a b", "x");
}

TEST(permissions)
{
    EXPECT(PARSE("x") == 0);
    EXPECT(o.cage.network.mode == SG_NETWORK_BLOCK && !o.cage.approve && !o.cage.policy);
    EXPECT(PARSE("--network", "allow", "--approve", "--policy", "p", "x") == 0);
    EXPECT(o.cage.network.mode == SG_NETWORK_ALLOW && o.cage.approve);
    EXPECT(!o.cage.network.allow && !o.cage.network.deny);
    EXPECT_STR(o.cage.policy, "p");
    REFUSED("'block', 'allow' or a list", "--network", "open", "x");
    REFUSED("'block', 'allow' or a list", "--network", "", "x");
}

TEST(network_lists)
{
    EXPECT(PARSE("--network", "a.test,*.b.test,192.0.2.7,!198.51.100.0/24,2001:db8::/32", "x") ==
           0);
    EXPECT(o.cage.network.mode == SG_NETWORK_LIST);
    EXPECT_STR(o.cage.network.allow[0], "a.test");
    EXPECT_STR(o.cage.network.allow[1], "*.b.test");
    EXPECT_STR(o.cage.network.allow[2], "192.0.2.7");
    EXPECT_STR(o.cage.network.allow[3], "2001:db8::/32");
    EXPECT(!o.cage.network.allow[4]);
    EXPECT_STR(o.cage.network.deny[0], "198.51.100.0/24");
    EXPECT(!o.cage.network.deny[1]);
    EXPECT(PARSE("--network", "!*.ads.test", "x") == 0);
    EXPECT(o.cage.network.mode == SG_NETWORK_ALLOW && !o.cage.network.allow[0]);
    EXPECT_STR(o.cage.network.deny[0], "*.ads.test");
    EXPECT(PARSE("--network", "a.test", "--network", "block", "x") == 0);
    EXPECT(o.cage.network.mode == SG_NETWORK_BLOCK && !o.cage.network.allow);
}

TEST(bad_network_lists)
{
    static const char *const bad[] = {"a.test,",
                                      "allow,a.test",
                                      "a.test,!block",
                                      ",a.test",
                                      "a.test,,b.test",
                                      "a..test",
                                      ".test",
                                      "a test.x",
                                      "*",
                                      "*.",
                                      "a.*.test",
                                      "**.test",
                                      "http://a.test",
                                      "a.test:443",
                                      "192.0.2.256",
                                      "192.0.2.7/33",
                                      "192.0.2.0/",
                                      "192.0.2.0/-1",
                                      "2001:db8::/129",
                                      "2001:db8",
                                      "192.0.2",
                                      "!!a.test",
                                      "a.test/24",
                                      "\xc3\xa9.test"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        bool refused = PARSE("--network", bad[i], "x") < 0 && strstr(e.message, "--network");
        if (!refused)
            printf("# '%s' is accepted\n", bad[i]);
        EXPECT(refused);
    }
}

TEST(a_terminal_and_json_exclude_each_other)
{
    REFUSED("--tty and --json", "-t", "--json", "x");
}

TEST(help_needs_no_source)
{
    EXPECT(PARSE("--help") == 0);
    EXPECT(o.cage.help);
}

TEST(too_many)
{
    char *argv[2 * (CAGE_MOUNTS_MAX + 1) + 2];
    char run[] = "run", option[] = "--mount", value[] = "/a:/b";
    int argc = 0;

    run_options_done(&o);
    argv[argc++] = run;
    for (int i = 0; i <= CAGE_MOUNTS_MAX; i++) {
        argv[argc++] = option;
        argv[argc++] = value;
    }
    argv[argc] = NULL;
    EXPECT(run_options_parse(argc, argv, &o, &e) == -E2BIG);
    EXPECT(strstr(e.message, "more than 64 mounts") != NULL);
}

TEST(nearest_word)
{
    static const char *const words[] = {"run", "doctor", NULL, "version"};

    EXPECT_STR(suggest_nearest("rum", words, 4), "run");
    EXPECT_STR(suggest_nearest("docter", words, 4), "doctor");
    EXPECT_STR(suggest_nearest("versoin", words, 4), "version");
    EXPECT(suggest_nearest("elephant", words, 4) == NULL);
    EXPECT(suggest_nearest("", words, 4) == NULL);
}
