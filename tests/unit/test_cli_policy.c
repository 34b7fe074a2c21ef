/* The text files that the command line reads: policies, environment files, code. */
#include "tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "cli/local/policy_file.h"
#include "cli/local/run_inputs.h"
#include "cli/shared/text_file.h"

TAP_MAIN

static struct sg_error e;

static int parse_policy(struct policy_file *p, const char *text)
{
    char copy[1024];

    *p = (struct policy_file){0};
    e = (struct sg_error){0};
    snprintf(copy, sizeof(copy), "%s", text);
    return policy_file_parse(p, "policy", copy, &e);
}

static int parse_env(struct env_list *l, const char *text)
{
    char copy[1024];

    *l = (struct env_list){0};
    e = (struct sg_error){0};
    snprintf(copy, sizeof(copy), "%s", text);
    return env_list_parse(l, "app.env", copy, &e);
}

/* A file below a directory of our own that is removed at the end of the test. */
static char dir[64];

static const char *make_file(const char *name, const void *data, size_t len)
{
    static char path[128];

    if (!dir[0]) {
        snprintf(dir, sizeof(dir), "/tmp/test-cli-policy-XXXXXX");
        EXPECT(mkdtemp(dir) != NULL);
    }
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT(fd >= 0 && fd_write_all(fd, data, len) == 0 && fchmod(fd, 0644) == 0);
    close(fd);
    return path;
}

static void remove_files(const char *path)
{
    EXPECT(unlink(path) == 0);
    EXPECT(rmdir(dir) == 0);
    dir[0] = '\0';
}

/* ---- policy ---------------------------------------------------------------------------------- */

TEST(policy_rules)
{
    struct policy_file p;

    EXPECT(parse_policy(&p, "# ours\n\n  mount-root /srv/data \r\nmount-root\t/home\n"
                            "allow network\nallow writable-mounts") == 0);
    EXPECT(p.n_roots == 2);
    EXPECT_STR(p.policy.mount_roots[0], "/srv/data");
    EXPECT_STR(p.policy.mount_roots[1], "/home");
    EXPECT(p.policy.mount_roots[2] == NULL);
    EXPECT(p.policy.allow_network && p.policy.allow_writable_mounts);
    policy_file_done(&p);
}

TEST(empty_policy_is_the_default)
{
    struct policy_file p;

    EXPECT(parse_policy(&p, "# nothing\n") == 0);
    EXPECT(!p.policy.mount_roots && !p.policy.allow_network && !p.policy.allow_writable_mounts);
    policy_file_done(&p);
}

TEST(policy_mistakes_name_file_and_line)
{
    struct policy_file p;

    EXPECT(parse_policy(&p, "allow network\nallow everything\n") < 0);
    EXPECT(strstr(e.message, "policy:2: cannot allow 'everything'") != NULL);
    policy_file_done(&p);
    EXPECT(parse_policy(&p, "\n\nmount-roots /x\n") < 0);
    EXPECT(strstr(e.message, "policy:3: unknown rule 'mount-roots'") != NULL);
    policy_file_done(&p);
    EXPECT(parse_policy(&p, "mount-root relative/path") < 0);
    EXPECT(strstr(e.message, "policy:1: mount-root needs an absolute path") != NULL);
    policy_file_done(&p);
    EXPECT(parse_policy(&p, "allow") < 0);
    policy_file_done(&p);
}

TEST(policy_that_others_can_write_is_refused)
{
    struct policy_file p = {0};
    const char *path = make_file("policy", "allow network\n", 14);

    EXPECT(policy_file_load(&p, path, &e) == 0);
    EXPECT(p.policy.allow_network);
    policy_file_done(&p);
    EXPECT(chmod(path, 0664) == 0);
    EXPECT(policy_file_load(&p, path, &e) == -EPERM);
    EXPECT(strstr(e.message, "chmod go-w") != NULL);
    EXPECT(!p.policy.allow_network);
    EXPECT(chmod(path, 0644) == 0 && chown(path, 1234, (gid_t)-1) == 0);
    EXPECT(policy_file_load(&p, path, &e) == -EPERM);
    EXPECT(strstr(e.message, "uid 1234") != NULL);
    remove_files(path);
}

TEST(named_policy_must_exist)
{
    struct policy_file p = {0};

    EXPECT(policy_file_load(&p, "/nonexistent/policy", &e) == -ENOENT);
    EXPECT(strstr(e.message, "/nonexistent/policy") != NULL);
}

/* ---- environment files ----------------------------------------------------------------------- */

TEST(env_file_lines)
{
    struct env_list l;

    EXPECT(parse_env(&l, "# comment\n\nA=1\r\n  B=two words  \nC=\"a \\\"b\\\"\\n\"\n"
                         "D='raw \\n $x'\nE=\nF=x#y\nA=last") == 0);
    EXPECT(l.n == 6);
    EXPECT_STR(l.v[0], "A=last");
    EXPECT_STR(l.v[1], "B=two words");
    EXPECT_STR(l.v[2], "C=a \"b\"\n");
    EXPECT_STR(l.v[3], "D=raw \\n $x");
    EXPECT_STR(l.v[4], "E=");
    EXPECT_STR(l.v[5], "F=x#y");
    EXPECT(env_list_has(&l, "F") && !env_list_has(&l, "G"));
    env_list_done(&l);
}

TEST(env_file_mistakes_name_file_and_line_but_no_value)
{
    static const char *const bad[] = {"A=1\nB hunter2\n", "A=1\n=hunter2\n", "A=1\n9=hunter2\n",
                                      "A=1\nB=\"hunter2\n", "A=1\nB='hunter2' x\n"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct env_list l;

        EXPECT(parse_env(&l, bad[i]) < 0);
        EXPECT(strstr(e.message, "app.env:2: ") == e.message);
        EXPECT(!strstr(e.message, "hunter2"));
        env_list_done(&l);
    }
}

TEST(env_option_wins_over_env_file)
{
    const char *path = make_file("app.env", "A=file\nB=file\n", 14);
    char run[] = "run", option[] = "--env=A=option", file[160], code[] = "x";
    char *argv[] = {run, option, file, code, NULL};
    struct run_options o;
    struct run_inputs in;

    snprintf(file, sizeof(file), "--env-file=%s", path);
    EXPECT(run_options_parse(4, argv, &o, &e) == 0);
    EXPECT(run_inputs_load(&o, &in, &e) == 0);
    EXPECT(in.cage.env.n == 2);
    EXPECT_STR(in.cage.env.v[0], "A=option");
    EXPECT_STR(in.cage.env.v[1], "B=file");
    EXPECT_STR(in.code, "x");
    run_inputs_done(&in);
    run_options_done(&o);
    remove_files(path);
}

/* ---- code ------------------------------------------------------------------------------------ */

static int load_code_file(const char *path, struct run_inputs *in)
{
    char run[] = "run", option[] = "-f", file[160];
    char *argv[] = {run, option, file, NULL};
    struct run_options o;

    snprintf(file, sizeof(file), "%s", path);
    EXPECT(run_options_parse(3, argv, &o, &e) == 0);
    int r = run_inputs_load(&o, in, &e);
    run_options_done(&o);
    return r;
}

TEST(code_from_a_file_and_its_language)
{
    struct run_inputs in;
    const char *path = make_file("main.js", "console.log(1)", 14);

    EXPECT(load_code_file(path, &in) == 0);
    EXPECT_STR(in.code, "console.log(1)");
    EXPECT(in.code_len == 14);
    EXPECT(in.language == SG_JAVASCRIPT);
    run_inputs_done(&in);
    remove_files(path);
    path = make_file("main.rb", "puts 1", 6);
    EXPECT(load_code_file(path, &in) < 0);
    EXPECT(strstr(e.message, "--language") != NULL);
    remove_files(path);
    path = make_file("script", "print(1)", 8);
    EXPECT(load_code_file(path, &in) == 0);
    EXPECT(in.language == SG_PYTHON);
    run_inputs_done(&in);
    remove_files(path);
}

TEST(code_that_cannot_be_used)
{
    struct run_inputs in;
    const char *path = make_file("main.py", "a\0b", 3);

    EXPECT(load_code_file(path, &in) == -EINVAL);
    EXPECT(strstr(e.message, "NUL byte at offset 1") != NULL);
    EXPECT(truncate(path, 200 << 20) == 0);
    EXPECT(load_code_file(path, &in) == -EFBIG);
    EXPECT(strstr(e.message, "is 200 MiB, the limit is 64 MiB") != NULL);
    EXPECT(load_code_file(dir, &in) == -EISDIR);
    EXPECT(strstr(e.message, "is a directory") != NULL);
    remove_files(path);
    EXPECT(load_code_file("/nonexistent.py", &in) == -ENOENT);
    EXPECT(strstr(e.message, "'/nonexistent.py'") != NULL);
}

TEST(a_stream_without_end_is_not_read_whole)
{
    char *text;
    size_t len;

    EXPECT(text_file_load("code", "/dev/zero", 4096, "make it smaller", &text, &len, &e) == -EFBIG);
    EXPECT(strstr(e.message, "the limit is 4 KiB: make it smaller") != NULL);
}
