/* libsandglass as another program uses it: through the installed header and library only. Each case
 * is run by name by library.sh, in a process of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sandglass.h>

static int failures;

#define EXPECT(x)                                                  \
    do {                                                           \
        if (!(x)) {                                                \
            failures++;                                            \
            printf("%s:%d: EXPECT(%s)\n", __FILE__, __LINE__, #x); \
        }                                                          \
    } while (0)

#define LITERAL(s) s, sizeof(s) - 1

static int run_python(const char *code, const struct sg_run *run, struct sg_result *ret)
{
    struct sg_error e = {0};
    int r = sg_execute_code(code, strlen(code), SG_PYTHON, run, ret, &e);

    if (r < 0)
        printf("error %d (%s): %s\n", r, sg_error_kind_name(e.kind), e.message);
    return r;
}

/* ---- one-shot -------------------------------------------------------------------------------- */

static void execute_code(void)
{
    struct sg_result r;

    EXPECT(run_python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", NULL,
                      &r) == 0);
    EXPECT(strcmp(r.stdout_data, "out\n") == 0 && r.stdout_len == 4);
    EXPECT(strcmp(r.stderr_data, "err\n") == 0 && r.stderr_len == 4);
    EXPECT(r.exit_code == 3 && r.signal == 0);
    EXPECT(r.status == SG_STATUS_EXECUTION_ERROR && r.limit == SG_LIMIT_NONE);
    EXPECT(r.error_message[0] != '\0');
    EXPECT(r.duration_us > 0 && r.usage.memory_peak_bytes > 0);
    EXPECT(r.usage.stdout_bytes == 4 && r.usage.stderr_bytes == 4);
    EXPECT(r.limits_applied.memory_bytes == 1ull << 30 && r.limits_applied.disk_bytes == 512ull
                                                                                             << 20);
    EXPECT(r.limits_applied.cpus_milli == 1000 && r.limits_applied.pids == 512);
    EXPECT(r.timeout_ms == 30000 && r.output_limit == 8u << 20);
    sg_result_free(&r);
}

static void every_language(void)
{
    static const char *const code[] = {
        [SG_PYTHON] = "print('hello')",
        [SG_JAVASCRIPT] = "console.log('hello')",
        [SG_TYPESCRIPT] = "const s: string = 'hello'; console.log(s)",
        [SG_BASH] = "echo hello",
    };

    for (int l = 0; l < SG_LANGUAGE_MAX_; l++) {
        struct sg_error e = {0};
        struct sg_result r;
        enum sg_language parsed;

        EXPECT(sg_language_parse(sg_language_name((enum sg_language)l), &parsed, &e) == 0);
        EXPECT((int)parsed == l);
        EXPECT(sg_execute_code(code[l], strlen(code[l]), parsed, NULL, &r, &e) == 0);
        EXPECT(strcmp(r.stdout_data, "hello\n") == 0 && r.status == SG_STATUS_SUCCESS);
        EXPECT(r.error_message[0] == '\0');
        sg_result_free(&r);
    }
}

struct results {
    char text[256];
};

static void note_result(void *arg, const char *json, size_t len)
{
    struct results *all = arg;
    size_t n = strlen(all->text);

    snprintf(all->text + n, sizeof(all->text) - n, "%.*s|", (int)len, json);
}

static void cells(void)
{
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s = NULL;
    struct sg_exec x = SG_EXEC_INIT;
    struct sg_error e = {0};
    struct sg_result r;

    EXPECT(sg_engine_open(2, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, NULL, &s, &e) == 0);
    x.on_result = note_result;
    for (int i = 0; i < 3; i++) {
        struct results all = {""};

        x.on_result_arg = &all;
        x.cell = i > 0;
        EXPECT(sg_sandbox_run_code(s, LITERAL("x = 20\nx + 22"), SG_PYTHON, &x, &r, &e) == 0);
        EXPECT(strcmp(r.stdout_data, i > 0 ? "42\n" : "") == 0 && r.exit_code == 0);
        EXPECT(i > 0 ? strstr(all.text, "\"42\"") != NULL : all.text[0] == '\0');
        EXPECT(strchr(all.text, '|') == strrchr(all.text, '|')); /* nothing of the run before */
        sg_result_free(&r);
    }
    EXPECT(sg_sandbox_run_code(s, LITERAL("ls -A /tmp"), SG_BASH, &x, &r, &e) == 0);
    EXPECT(strcmp(r.stdout_data, "") == 0);
    sg_result_free(&r);
    sg_sandbox_close(s, NULL);
    sg_engine_close(engine);
}

static void execute_file(void)
{
    char path[] = "/tmp/sandglass-library-XXXXXX.sh";
    struct sg_error e = {0};
    struct sg_result r;
    int fd = mkstemps(path, 3);

    EXPECT(fd >= 0 && write(fd, LITERAL("echo \"from a file\"\n")) > 0);
    close(fd);
    EXPECT(sg_execute_file(path, SG_LANGUAGE_MAX_, NULL, &r, &e) == 0);
    EXPECT(strcmp(r.stdout_data, "from a file\n") == 0);
    sg_result_free(&r);
    unlink(path);
    EXPECT(sg_execute_file(path, SG_LANGUAGE_MAX_, NULL, &r, &e) == -ENOENT);
    EXPECT(e.kind == SG_ERR_NOT_FOUND && strstr(e.message, path));
    EXPECT(sg_execute_file("/tmp/x.unknown", SG_LANGUAGE_MAX_, NULL, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID);
    EXPECT(sg_execute_file("/tmp", SG_PYTHON, NULL, &r, &e) < 0 && e.kind == SG_ERR_INVALID);
}

static void execute_command(void)
{
    static const char *const argv[] = {"sh", "-c", "echo $A $(id -un) $(pwd); cat", NULL};
    static const char *const env[] = {"A=b c", NULL};
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r;

    run.exec.argv = argv;
    run.exec.env = env;
    run.exec.user = "root";
    run.exec.cwd = "/tmp";
    run.exec.stdin_data = "in\0put";
    run.exec.stdin_len = 6;
    EXPECT(sg_execute_command(&run, &r, &e) == 0);
    EXPECT(r.stdout_len == 20 && memcmp(r.stdout_data, "b c root /tmp\nin\0put", 20) == 0);
    sg_result_free(&r);
}

static void large_standard_input(void)
{
    static const char *const argv[] = {"wc", "-c", NULL};
    size_t len = 10u << 20;
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r;
    char *data = malloc(len);

    memset(data, 'x', len);
    run.exec.argv = argv;
    run.exec.stdin_data = data;
    run.exec.stdin_len = len;
    EXPECT(sg_execute_command(&run, &r, &e) == 0);
    EXPECT(strcmp(r.stdout_data, "10485760\n") == 0);
    sg_result_free(&r);
    free(data);
}

/* ---- limits and errors ----------------------------------------------------------------------- */

static void timeouts(void)
{
    struct sg_run run = SG_RUN_INIT;
    struct sg_result r;

    run.exec.timeout_ms = 500;
    EXPECT(run_python("import time; print('before', flush=True); time.sleep(60)", &run, &r) == 0);
    EXPECT(r.status == SG_STATUS_TIMEOUT && r.limit == SG_LIMIT_TIME && r.exit_code == 124);
    EXPECT(strcmp(r.stdout_data, "before\n") == 0 && r.timeout_ms == 500);
    EXPECT(strcmp(sg_limit_name(r.limit), "time") == 0);
    sg_result_free(&r);
}

static void other_limits(void)
{
    static const struct {
        const char *code;
        enum sg_limit limit;
        const char *name;
    } cases[] = {
        {"x = bytearray(1 << 30)", SG_LIMIT_MEMORY, "memory"},
        {"import os, time\nfor i in range(99):\n    if os.fork() == 0: time.sleep(60)",
         SG_LIMIT_PIDS, "pids"},
        {"open('/tmp/f', 'wb').write(bytes(32 << 20))", SG_LIMIT_DISK, "disk"},
        {"print('x' * 100000)", SG_LIMIT_OUTPUT, "output"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sg_run run = SG_RUN_INIT;
        struct sg_result r;

        run.options.limits = (struct sg_limits){
            .memory_bytes = 64u << 20, .disk_bytes = 8u << 20, .pids = 16, .disk_inodes = 5000};
        run.exec.output_limit = 1000;
        EXPECT(run_python(cases[i].code, &run, &r) == 0);
        EXPECT(r.limit == cases[i].limit && strcmp(sg_limit_name(r.limit), cases[i].name) == 0);
        EXPECT(r.error_message[0] != '\0' && r.limits_applied.disk_inodes == 5000);
        sg_result_free(&r);
    }
}

static void denied_without_approval(void)
{
    const struct sg_mount mount = {.source = "/tmp", .target = "/data", .writable = true};
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r = {.exit_code = 77};

    run.options.mounts = &mount;
    run.options.n_mounts = 1;
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, &run, &r, &e) == -EACCES);
    EXPECT(e.kind == SG_ERR_DENIED && e.code == -EACCES && strstr(e.message, "'writable-mounts'"));
    EXPECT(r.exit_code == 77); /* written on success only */
    run.options.n_mounts = 0;
    run.options.network = SG_NETWORK_ALLOW;
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, &run, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_DENIED && strstr(e.message, "'network'"));
    run.options.network = SG_NETWORK_LIST;
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, &run, &r, &e) == -EINVAL);
    EXPECT(e.kind == SG_ERR_INVALID && strstr(e.message, "nothing in it"));
}

static void policy_and_approval(void)
{
    char dir[] = "/tmp/sandglass-library-XXXXXX";
    struct sg_mount mount = {.source = dir, .target = "/data", .writable = true};
    const char *roots[] = {"/srv", NULL};
    struct sg_policy policy = {.allow_writable_mounts = true};
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r;
    struct stat st;
    char path[64];

    EXPECT(mkdtemp(dir) && chown(dir, 4321, 4322) == 0);
    snprintf(path, sizeof(path), "%s/made", dir);
    run.options.mounts = &mount;
    run.options.n_mounts = 1;
    run.options.approved = true;
    EXPECT(run_python("open('/data/made', 'w').write('x')", &run, &r) == 0 && r.exit_code == 0);
    EXPECT(stat(path, &st) == 0 && st.st_uid == 4321 && st.st_gid == 4322);
    sg_result_free(&r);
    unlink(path);

    run.options.approved = false;
    run.options.policy = &policy;
    EXPECT(run_python("open('/data/made', 'w').write('x')", &run, &r) == 0 && r.exit_code == 0);
    EXPECT(stat(path, &st) == 0);
    sg_result_free(&r);
    unlink(path);

    policy.mount_roots = roots;
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, &run, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_DENIED && strstr(e.message, "'mount-roots'"));
    rmdir(dir);
}

static void bad_input(void)
{
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r;
    enum sg_language l;
    size_t huge = 200u << 20;
    char *code = malloc(huge);
    static const char *const missing[] = {"no-such-program", NULL};

    memset(code, '#', huge);
    EXPECT(sg_execute_code(code, huge, SG_PYTHON, NULL, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID && strstr(e.message, "64 MiB"));
    free(code);
    EXPECT(sg_execute_code("a\0b", 3, SG_PYTHON, NULL, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID && strstr(e.message, "NUL"));
    EXPECT(sg_execute_code(LITERAL("1"), SG_LANGUAGE_MAX_, NULL, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_INVALID);
    EXPECT(sg_language_parse("cobol", &l, &e) < 0 && e.kind == SG_ERR_INVALID);
    EXPECT(strstr(e.message, "cobol"));
    EXPECT(sg_execute_command(&run, &r, &e) < 0 && e.kind == SG_ERR_INVALID); /* no argv */
    run.exec.argv = missing;
    EXPECT(sg_execute_command(&run, &r, &e) == -ENOENT && e.kind == SG_ERR_NOT_FOUND);
    EXPECT(strstr(e.message, "no-such-program"));
    run.options.limits.memory_bytes = 1;
    EXPECT(sg_execute_command(&run, &r, &e) < 0 && e.kind == SG_ERR_INVALID);
    EXPECT(strstr(e.message, "memory"));
    memset(&run, 0, sizeof(run));
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, &run, &r, &e) < 0); /* no initialiser */
    EXPECT(e.kind == SG_ERR_INVALID);
    EXPECT(sg_execute_code("a\0b", 3, SG_PYTHON, NULL, &r, NULL) < 0); /* e may be NULL */
}

static void needs_root(void)
{
    struct sg_error e = {0};
    struct sg_result r;

    EXPECT(setuid(65534) == 0);
    EXPECT(sg_execute_code(LITERAL("1"), SG_PYTHON, NULL, &r, &e) < 0);
    EXPECT(e.kind == SG_ERR_DENIED && strstr(e.message, "root"));
}

/* ---- output as it comes, interruption -------------------------------------------------------- */

struct heard {
    char text[2][256];
    unsigned calls;
};

static void hear(void *arg, enum sg_stream stream, const void *data, size_t len)
{
    struct heard *h = arg;

    strncat(h->text[stream == SG_STDERR], data, len);
    h->calls++;
}

static void live_output(void)
{
    struct sg_run run = SG_RUN_INIT;
    struct heard h = {0};
    struct sg_result r;

    run.exec.on_output = hear;
    run.exec.on_output_arg = &h;
    EXPECT(run_python("import sys, time\nprint('one', flush=True)\ntime.sleep(0.3)\nprint('two')\n"
                      "print('three', file=sys.stderr)",
                      &run, &r) == 0);
    EXPECT(strcmp(h.text[0], "one\ntwo\n") == 0 && strcmp(h.text[1], "three\n") == 0);
    EXPECT(h.calls >= 3 && r.stdout_len == 0 && r.usage.stdout_bytes == 8);
    sg_result_free(&r);
}

static void interruption(void)
{
    struct sg_run run = SG_RUN_INIT;
    struct sg_result r;
    int p[2];

    EXPECT(pipe(p) == 0 && write(p[1], "x", 1) == 1);
    run.exec.interrupt_fd = p[0];
    struct sg_error e = {0};
    int res = sg_execute_code(LITERAL("import time; time.sleep(60)"), SG_PYTHON, &run, &r, &e);
    if (res == 0) {
        EXPECT(r.status != SG_STATUS_SUCCESS && r.status != SG_STATUS_TIMEOUT);
        sg_result_free(&r);
    } else {
        EXPECT(e.message[0] != '\0');
    }
}

static void terminal(void)
{
    static const char *const argv[] = {"sh", "-c", "test -t 1 && stty size; echo err >&2", NULL};
    struct sg_run run = SG_RUN_INIT;
    struct sg_error e = {0};
    struct sg_result r;

    run.exec.argv = argv;
    run.exec.tty = true;
    run.exec.tty_rows = 31;
    run.exec.tty_cols = 99;
    EXPECT(sg_execute_command(&run, &r, &e) == 0);
    EXPECT(strcmp(r.stdout_data, "31 99\r\nerr\r\n") == 0 && r.stderr_len == 0);
    sg_result_free(&r);
}

/* ---- sandboxes that live on ------------------------------------------------------------------ */

static int shell(struct sg_sandbox *s, const char *user, const char *command, struct sg_result *ret)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    struct sg_exec x = SG_EXEC_INIT;
    struct sg_error e = {0};

    x.argv = argv;
    x.user = user;
    int r = sg_sandbox_exec(s, &x, ret, &e);
    if (r < 0)
        printf("%s: %s\n", command, e.message);
    return r;
}

static void living_sandbox(void)
{
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s = NULL;
    struct sg_error e = {0};
    struct sg_result r;
    char *data;
    size_t len;

    EXPECT(sg_engine_open(4, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, NULL, &s, &e) == 0);
    EXPECT(strlen(sg_sandbox_id(s)) == 20);
    EXPECT(strspn(sg_sandbox_id(s), "abcdefghijklmnopqrstuvwxyz0123456789") == 20);

    EXPECT(shell(s, "user", "echo kept > file; (sleep 60 &) ; echo done", &r) == 0);
    sg_result_free(&r);
    EXPECT(sg_sandbox_run_code(s, LITERAL("print(open('file').read())"), SG_PYTHON, NULL, &r, &e) ==
           0);
    EXPECT(strcmp(r.stdout_data, "kept\n\n") == 0);
    sg_result_free(&r);
    EXPECT(shell(s, "root", "echo of root > /etc/f; cat /home/user/file; pgrep -x sleep | wc -l",
                 &r) == 0);
    EXPECT(strcmp(r.stdout_data, "kept\n1\n") == 0);
    sg_result_free(&r);

    EXPECT(sg_sandbox_write_file(s, "user", "dir/new", LITERAL("a\0b"), &e) == 0);
    EXPECT(sg_sandbox_read_file(s, "user", "/home/user/dir/new", 100, &data, &len, &e) == 0);
    EXPECT(len == 3 && memcmp(data, "a\0b", 3) == 0);
    free(data);
    EXPECT(sg_sandbox_read_file(s, "user", "dir/new", 2, &data, &len, &e) < 0 &&
           e.kind == SG_ERR_LIMIT);
    EXPECT(sg_sandbox_read_file(s, "user", "missing", 100, &data, &len, &e) == -ENOENT);
    EXPECT(e.kind == SG_ERR_NOT_FOUND);
    EXPECT(sg_sandbox_read_file(s, "user", "/etc/shadow", 100, &data, &len, &e) == -EACCES);
    EXPECT(e.kind == SG_ERR_DENIED);
    EXPECT(sg_sandbox_write_file(s, "user", "/etc/x", LITERAL("x"), &e) == -EACCES);
    EXPECT(sg_sandbox_write_file(s, "root", "/etc/x", LITERAL("x"), &e) == 0);
    EXPECT(sg_sandbox_close(s, &e) == 0);
    sg_engine_close(engine);
}

static void neighbours(void)
{
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s[3] = {NULL}, *more;
    struct sg_error e = {0};
    struct sg_result r;

    EXPECT(sg_engine_open(3, &engine, &e) == 0);
    for (int i = 0; i < 3; i++)
        EXPECT(sg_sandbox_open(engine, NULL, &s[i], &e) == 0);
    EXPECT(strcmp(sg_sandbox_id(s[0]), sg_sandbox_id(s[1])) != 0);
    EXPECT(sg_sandbox_open(engine, NULL, &more, &e) < 0 && e.kind == SG_ERR_LIMIT);
    EXPECT(shell(s[0], "user", "echo mine > /tmp/f", &r) == 0);
    sg_result_free(&r);
    EXPECT(shell(s[1], "user", "ls -A /tmp", &r) == 0 && r.stdout_len == 0);
    sg_result_free(&r);
    EXPECT(shell(s[0], "root", "kill -9 -1; true", &r) == 0);
    sg_result_free(&r);
    EXPECT(shell(s[0], "user", "cat /tmp/f", &r) == 0 && strcmp(r.stdout_data, "mine\n") == 0);
    sg_result_free(&r);
    EXPECT(sg_sandbox_close(s[0], &e) == 0);
    EXPECT(sg_sandbox_open(engine, NULL, &s[0], &e) == 0); /* the place is free again */
    EXPECT(shell(s[0], "user", "ls -A /tmp", &r) == 0 && r.stdout_len == 0);
    sg_result_free(&r);
    sg_engine_close(engine); /* ends those that are left */
}

static void limits_in_a_row(void)
{
    struct sg_options o = SG_OPTIONS_INIT;
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s = NULL;
    struct sg_error e = {0};
    struct sg_result r;

    o.limits.memory_bytes = 64u << 20;
    EXPECT(sg_engine_open(1, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, &o, &s, &e) == 0);
    EXPECT(shell(s, "user", "python3 -c 'x = bytearray(1 << 30)'", &r) == 0);
    EXPECT(r.limit == SG_LIMIT_MEMORY);
    sg_result_free(&r);
    EXPECT(shell(s, "user", "echo fine", &r) ==
           0); /* the sandbox goes on, the limit is forgotten */
    EXPECT(r.limit == SG_LIMIT_NONE && strcmp(r.stdout_data, "fine\n") == 0);
    sg_result_free(&r);
    EXPECT(sg_sandbox_close(s, &e) == 0);
    sg_engine_close(engine);
}

static void closing_nothing(void)
{
    EXPECT(sg_sandbox_close(NULL, NULL) == 0);
    sg_engine_close(NULL);
    EXPECT(strcmp(sg_error_kind_name(SG_ERR_NOT_FOUND), "not_found") == 0);
    EXPECT(strcmp(sg_status_name(SG_STATUS_SETUP_ERROR), "setup_error") == 0);
    EXPECT(sg_limit_name(SG_LIMIT_NONE) == NULL);
}

/* ---- the network: the guard of these tests says where a connection was meant to go ----------- */

#define ASK(address, port)                                                                        \
    "python3 -c 'import socket; s = socket.create_connection((\"" address "\", " #port "), 10); " \
    "print(s.makefile().read())' 2>&1 | tail -1"

static struct sg_options with_network(const char *const *allow)
{
    struct sg_options o = SG_OPTIONS_INIT;

    o.network = allow ? SG_NETWORK_LIST : SG_NETWORK_ALLOW;
    o.network_allow = allow;
    o.approved = true;
    o.guard_program = getenv("GUARD_OF_TESTS");
    return o;
}

static void says(struct sg_sandbox *s, const char *command, const char *expected)
{
    struct sg_result r;

    if (shell(s, "user", command, &r) < 0) {
        failures++;
        return;
    }
    if (!strstr(r.stdout_data, expected))
        printf("'%s' is not '%s'\n", r.stdout_data, expected);
    EXPECT(strstr(r.stdout_data, expected) != NULL);
    sg_result_free(&r);
}

static void network(void)
{
    static const char *const list[] = {"a.test", "192.0.2.0/24", NULL};
    struct sg_options all = with_network(NULL), some = with_network(list);
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s[3] = {NULL};
    struct sg_error e = {0};

    EXPECT(sg_engine_open(4, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, NULL, &s[0], &e) == 0);
    EXPECT(sg_sandbox_open(engine, &all, &s[1], &e) == 0);
    EXPECT(sg_sandbox_open(engine, &some, &s[2], &e) == 0);
    says(s[0], ASK("198.51.100.7", 80), "Network is unreachable");
    says(s[1], ASK("198.51.100.7", 80), "198.51.100.7 80\n");
    says(s[2], ASK("198.51.100.7", 7), "\"allow\":[\"a.test\",\"192.0.2.0/24\"]");
    says(s[2], ASK("198.51.100.7", 7), sg_sandbox_id(s[2]));
    says(s[1], ASK("198.51.100.7", 9), ""); /* the guard dies of it */
    says(s[2], ASK("198.51.100.7", 443), "198.51.100.7 443\n");
    EXPECT(sg_sandbox_close(s[1], &e) == 0);
    EXPECT(sg_sandbox_pause(s[2], &e) == 0 && sg_sandbox_resume(s[2], &e) == 0);
    says(s[2], ASK("198.51.100.7", 81), "198.51.100.7 81\n");
    EXPECT(sg_sandbox_open(engine, &all, &s[1], &e) == 0);
    says(s[1], ASK("198.51.100.7", 82), "198.51.100.7 82\n");
    sg_engine_close(engine);
    all.guard_program = "/nowhere/guard";
    EXPECT(sg_engine_open(4, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, &all, &s[0], &e) < 0 && strstr(e.message, "/nowhere/guard"));
    EXPECT(sg_sandbox_open(engine, NULL, &s[0], &e) == 0);
    sg_engine_close(engine);
}

/* What was compiled before the fields of the network were there. */
static void older_options(void)
{
    struct sg_options o = SG_OPTIONS_INIT;
    struct sg_engine *engine = NULL;
    struct sg_sandbox *s = NULL;
    struct sg_error e = {0};

    memset(&o.network_allow, 0x55, sizeof(o) - offsetof(struct sg_options, network_allow));
    o.size = offsetof(struct sg_options, network_allow);
    EXPECT(sg_engine_open(2, &engine, &e) == 0);
    EXPECT(sg_sandbox_open(engine, &o, &s, &e) == 0);
    o.size--;
    EXPECT(sg_sandbox_open(engine, &o, &s, &e) == -EINVAL);
    o.size = sizeof(o) + 1;
    EXPECT(sg_sandbox_open(engine, &o, &s, &e) == -EINVAL);
    sg_engine_close(engine);
}

/* Descriptors, for callers that live long. */
static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += dup2(fd, fd) == fd;
    return n;
}

static void no_descriptor_leaks(void)
{
    struct sg_result r;
    unsigned before;

    EXPECT(run_python("print(1)", NULL, &r) == 0);
    sg_result_free(&r);
    before = open_descriptors();
    for (int i = 0; i < 5; i++) {
        EXPECT(run_python("print(1)", NULL, &r) == 0);
        sg_result_free(&r);
    }
    for (int i = 0; i < 3; i++) {
        struct sg_run run = SG_RUN_INIT;
        run.options = with_network(NULL);
        EXPECT(run_python("print(1)", &run, &r) == 0);
        sg_result_free(&r);
    }
    EXPECT(open_descriptors() == before);
}

static const struct {
    const char *name;
    void (*fn)(void);
} cases[] = {
    {"execute_code", execute_code},
    {"every_language", every_language},
    {"cells", cells},
    {"execute_file", execute_file},
    {"execute_command", execute_command},
    {"large_standard_input", large_standard_input},
    {"timeouts", timeouts},
    {"other_limits", other_limits},
    {"denied_without_approval", denied_without_approval},
    {"policy_and_approval", policy_and_approval},
    {"bad_input", bad_input},
    {"needs_root", needs_root},
    {"live_output", live_output},
    {"interruption", interruption},
    {"terminal", terminal},
    {"living_sandbox", living_sandbox},
    {"neighbours", neighbours},
    {"limits_in_a_row", limits_in_a_row},
    {"closing_nothing", closing_nothing},
    {"network", network},
    {"older_options", older_options},
    {"no_descriptor_leaks", no_descriptor_leaks},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc < 2)
            puts(cases[i].name);
        else if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].fn();
    }
    return failures != 0;
}
