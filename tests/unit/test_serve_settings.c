/* The settings of a server: the table, the file's form, the order of strength, and what each place
 * that names them says. SG_SOURCE_DIR is the root of the source tree. */
#include "tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "cli/local/serve_options.h"
#include "lib/settings/address.h"
#include "lib/settings/settings.h"
#include "warden/server.h"

TAP_MAIN

static int parse(struct settings *s, const char *text, struct sg_error *e)
{
    AUTO(free_p) char *copy = xstrdup(text);

    settings_init(s);
    return settings_parse_text(s, "file", copy, e);
}

static bool refused(const char *text, const char *message)
{
    struct settings s;
    struct sg_error e = {0};

    if (parse(&s, text, &e) == 0 && settings_check(&s, &e) == 0)
        return false;
    if (!strstr(e.message, message))
        printf("# '%s' does not say '%s'\n", e.message, message);
    return strstr(e.message, message) != NULL;
}

TEST(defaults_are_as_documented)
{
    struct settings s;
    struct sg_error e;

    settings_init(&s);
    EXPECT(settings_check(&s, &e) == 0);
    EXPECT_STR(s.listen, "127.0.0.1:3000");
    EXPECT_STR(s.state, "/var/lib/sandglass/server");
    EXPECT_STR(s.tls_cert, "");
    EXPECT(!s.insecure);
    EXPECT(s.sandbox_memory == 2ull << 30 && s.sandbox_disk == 1u << 30);
    EXPECT(s.worlds_disk == SETTINGS_AUTO);
    EXPECT(s.sandbox_cpus_milli == 2000 && s.sandbox_pids == 512);
    EXPECT(s.pool_min == 2 && s.pool_max == 32 && s.tenant_sandboxes == 100);
    EXPECT(s.checkpoints && s.checkpoint_keep == 20 && s.checkpoint_max == 32);
    EXPECT(s.checkpoint_age_ms == 86400000 && s.checkpoint_memory == 16ull << 30);
    EXPECT(s.max_timeout_ms == 24u * 3600 * 1000 && s.tenant_idle_ms == 600000);
    EXPECT(s.drain_timeout_ms == 30000);
    EXPECT(s.log == SETTINGS_LOG_AUTO && s.log_rate == 200 && s.log_size == 16u << 20 &&
           s.log_level == LEVEL_INFO);
}

TEST(a_file_of_lines)
{
    struct settings s;
    struct sg_error e = {0};

    EXPECT(parse(&s,
                 "# comment\n\n  listen=[::1]:80 , 127.0.0.1:81\r\n\tsandbox_memory = 3G  \n"
                 "domain = box.test:8443\ninsecure = yes\nlog = json\nsandbox_cpus = 0.5\n"
                 "max_timeout = 90m\nworlds_disk = 20G",
                 &e) == 0);
    EXPECT(s.worlds_disk == 20ull << 30);
    EXPECT_STR(s.listen, "[::1]:80 , 127.0.0.1:81");
    EXPECT(s.sandbox_memory == 3ull << 30 && s.insecure && s.log == SETTINGS_LOG_JSON);
    EXPECT_STR(s.domain, "box.test:8443");
    EXPECT(s.sandbox_cpus_milli == 500 && s.max_timeout_ms == 5400000);
    EXPECT(parse(&s, "worlds_disk = auto", &e) == 0 && s.worlds_disk == SETTINGS_AUTO);
    EXPECT(parse(&s, "sandbox_disk = auto", &e) == -EINVAL);
}

TEST(a_dot_in_a_key_is_an_underscore)
{
    struct settings s;
    struct sg_error e = {0};

    EXPECT(parse(&s, "egress.e2b_default = block\negress.dns=192.0.2.1\naudit.files = 3", &e) == 0);
    EXPECT(s.egress_e2b_default == EGRESS_BLOCK && s.audit_files == 3);
    EXPECT_STR(s.egress_dns, "192.0.2.1"); /* and one in a value is a dot */
    EXPECT(refused("egress.no_such = 1", "unknown setting 'egress_no_such'"));
}

TEST(errors_name_the_line)
{
    EXPECT(refused("\nlisten = here", "file:2: listen 'here'"));
    EXPECT(refused("nonsense", "file:1: write 'key = value'"));
    EXPECT(refused("# x\n\nno_such = 1", "file:3: unknown setting 'no_such'"));
    EXPECT(refused("sandbox_memory = 1", "file:1: sandbox_memory '1' is out of range: use 16 MiB"));
    EXPECT(refused("sandbox_pids = -1", "file:1: sandbox_pids '-1'"));
    EXPECT(refused("insecure = perhaps", "neither yes nor no"));
    EXPECT(refused("log = xml", "none of auto, text, json"));
    EXPECT(refused("max_timeout = 10", "") == false);
    EXPECT(refused("max_timeout = 1ms", "out of range"));
    EXPECT(refused("state = relative", "needs an absolute path"));
    EXPECT(refused("domain = a\001b", "control character"));
    EXPECT(refused("listen =", "names no address"));
}

TEST(what_settings_mean_together)
{
    EXPECT(refused("listen = 0.0.0.0:80", "reached from other machines"));
    EXPECT(refused("listen = 127.0.0.1:80, [::]:80", "[::]:80 can be reached"));
    EXPECT(!refused("listen = 0.0.0.0:80\ninsecure = yes", ""));
    EXPECT(!refused("listen = 0.0.0.0:80\ntls_cert = /c\ntls_key = /k", ""));
    EXPECT(!refused("listen = 127.9.9.9:80, localhost:0, [::1]:1", ""));
    EXPECT(refused("tls_key = /k", "tls_cert is missing"));
    EXPECT(refused("pool_min = 4\npool_max = 3", "pool_min 4 is more than pool_max 3"));
    EXPECT(refused("checkpoint_keep = 33", "checkpoint_keep 33 is more than checkpoint_max 32"));
    EXPECT(refused("checkpoints = perhaps", "neither yes nor no"));
    EXPECT(refused("domain = .x", "not a host name"));
    EXPECT(refused("domain = a b", "not a host name"));
    EXPECT(refused("domain = a:b", "not a host name"));
    EXPECT(refused("domain = a:70000", "not a host name"));
}

TEST(addresses)
{
    static const char *const bad[] = {
        "",          "3000",          ":3000",       "127.0.0.1", "127.0.0.1:",
        "[::1]",     "::1:80",        "[::1:80",     "a.test:80", "1.2.3:80",
        "1.2.3.4:x", "1.2.3.4:65536", "[1.2.3.4]:8", "[::1]:-1",  "1.2.3.4: 80",
        "[]:80"};
    char text[ADDRESS_TEXT_MAX];
    struct address a;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (address_parse("x", bad[i], &a, &e) == 0)
            printf("# accepted '%s'\n", bad[i]);
        EXPECT(address_parse("x", bad[i], &a, &e) < 0);
    }
    EXPECT(address_parse("x", "[::1]:0", &a, &e) == 0 && a.loopback);
    address_format(&a, text);
    EXPECT_STR(text, "[::1]:0");
    EXPECT(address_parse("x", "10.0.0.1:65535", &a, &e) == 0 && !a.loopback);
    address_format(&a, text);
    EXPECT_STR(text, "10.0.0.1:65535");
}

TEST(printing_and_reading_give_the_same)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct settings a, b;
    struct sg_error e = {0};

    EXPECT(parse(&a,
                 "sandbox_cpus = 1.25\nmax_timeout = 1500ms\nlog_level = error\ninsecure = on\n"
                 "sandbox_disk = 3M\ndomain = x.y\nlisten = 127.0.0.1:1,[::1]:2\nfront_user = me",
                 &e) == 0);
    strbuf_init(&out, SETTINGS_TEXT_MAX);
    settings_print(&a, &out);
    EXPECT(!out.truncated);
    EXPECT(parse(&b, out.buf, &e) == 0);
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        if (!settings_same(&a, &b, k))
            printf("# %s differs\n", setting_info(k)->key);
        EXPECT(settings_same(&a, &b, k));
    }
    EXPECT(!settings_same(&a, &b, SETTING_log) == (a.log != b.log));
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    EXPECT(f && fputs(text, f) >= 0 && fclose(f) == 0 && chmod(path, 0644) == 0);
}

static int read_all(const struct settings_source *from, struct settings *ret, struct sg_error *e)
{
    AUTO(close_p) int fd = -1;
    int r = serve_open_config(from->config, &fd, e);

    return r < 0 ? r : settings_read(from, fd, ret, e);
}

TEST(flags_are_stronger_than_the_environment_and_that_than_the_file)
{
    char path[] = "/tmp/sandglass-settings.XXXXXX";
    struct settings_source from = {.config = path};
    struct settings s;
    struct sg_error e = {0};
    int fd = mkstemp(path);

    EXPECT(fd >= 0);
    close(fd);
    write_file(path, "pool_min = 1\npool_max = 11\nsandbox_pids = 21\n");
    setenv("SANDGLASS_POOL_MAX", "12", 1);
    setenv("SANDGLASS_SANDBOX_PIDS", "22", 1);
    from.flags[SETTING_sandbox_pids] = "23";
    EXPECT(read_all(&from, &s, &e) == 0);
    EXPECT(s.pool_min == 1 && s.pool_max == 12 && s.sandbox_pids == 23);

    setenv("SANDGLASS_POOL_MAX", "many", 1);
    EXPECT(read_all(&from, &s, &e) < 0 && strstr(e.message, "SANDGLASS_POOL_MAX 'many'"));
    unsetenv("SANDGLASS_POOL_MAX");
    unsetenv("SANDGLASS_SANDBOX_PIDS");
    from.flags[SETTING_sandbox_pids] = "x";
    EXPECT(read_all(&from, &s, &e) < 0 && strstr(e.message, "--sandbox-pids 'x'"));
    from.flags[SETTING_sandbox_pids] = NULL;

    EXPECT(chmod(path, 0666) == 0);
    EXPECT(read_all(&from, &s, &e) < 0 && strstr(e.message, "chmod go-w"));
    unlink(path);
    EXPECT(read_all(&from, &s, &e) == -ENOENT);
}

/* ---- the answer to the warden ---------------------------------------------------------------- */

/* As the warden's child makes it. The exit status is 0 if that child may start no program. */
static int ask(const struct settings_source *from, const struct settings *now,
               struct settings_answer *ret)
{
    char name[] = "true";
    char *const argv[] = {name, NULL};
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        settings_answer(from, -1, now, ret);
        _exit(execv("/bin/true", argv) != -1 || errno != EPERM);
    }
    EXPECT(waitpid(pid, &status, 0) == pid);
    return status;
}

static struct settings_answer *share(void)
{
    void *p = mmap(NULL, sizeof(struct settings_answer), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    EXPECT(p != MAP_FAILED);
    return p;
}

TEST(a_child_without_rights_makes_the_answer)
{
    struct settings_source from = {.config = "file"};
    struct settings_answer *first = share(), *next = share(), *bad = share();

    from.flags[SETTING_listen] = "127.0.0.1:1,[::1]:2";
    from.flags[SETTING_metrics_listen] = "127.0.0.1:3";
    from.flags[SETTING_store] = "postgresql://me:word@db";
    from.flags[SETTING_metrics_token] = "hush";
    EXPECT(ask(&from, NULL, first) == 0 && first->r == 0);
    EXPECT(first->n_addresses == 3 && first->n_plain == 2 && first->store == STORE_POSTGRES);
    EXPECT(strstr(first->front.text, "metrics_token = hush\n"));
    EXPECT(first->guard.len > 0 && !strstr(first->guard.text, "hush") &&
           !strstr(first->guard.text, "word"));

    /* What is fixed keeps its value, and is told. */
    from.flags[SETTING_listen] = "127.0.0.1:9";
    from.flags[SETTING_pool_max] = "7";
    EXPECT(ask(&from, &first->settings, next) == 0 && next->r == 0);
    EXPECT(next->n_changed == 1 && strcmp(next->changed[0], "listen") == 0);
    EXPECT_STR(next->settings.listen, "127.0.0.1:1,[::1]:2");
    EXPECT(next->settings.pool_max == 7 && strstr(next->front.text, "pool_max = 7\n"));

    from.flags[SETTING_pool_max] = "many";
    EXPECT(ask(&from, NULL, bad) == 0 && bad->r < 0 && bad->error.kind == SG_ERR_INVALID);
    EXPECT(strstr(bad->error.message, "--pool-max 'many'"));
}

/* ---- every place that names them ------------------------------------------------------------- */

static char *load(const char *path)
{
    char *text = NULL;

    EXPECT(file_read(AT_FDCWD, path, 1u << 20, &text, NULL) == 0);
    return text ? text : xstrdup("");
}

static void expect_in(const char *file, const char *text, const char *what)
{
    if (!strstr(text, what))
        printf("# %s does not mention '%s'\n", file, what);
    EXPECT(strstr(text, what) != NULL);
}

TEST(the_manual_of_the_file_has_every_setting_and_its_default)
{
    AUTO(free_p) char *text = load(SG_SOURCE_DIR "/man/sandglass.conf.5.scd");

    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        const struct setting_info *info = setting_info(k);
        char entry[128];

        snprintf(entry, sizeof(entry), "\n*%s*", info->key);
        expect_in("sandglass.conf(5)", text, entry);
        if (info->normal[0]) {
            snprintf(entry, sizeof(entry), "Default: *%s%s*", info->normal[0] == '*' ? "\\" : "",
                     info->normal);
            expect_in("sandglass.conf(5)", text, entry);
        }
    }
}

TEST(the_manual_and_the_completion_have_every_flag)
{
    AUTO(free_p) char *page = load(SG_SOURCE_DIR "/man/sandglass-serve.1.scd");
    AUTO(free_p) char *completion = load(SG_SOURCE_DIR "/completions/sandglass.bash");
    const struct cli_syntax *syntax = serve_syntax();

    EXPECT(syntax->n_options == SETTING_MAX_ + 3);
    for (size_t i = 0; i < syntax->n_options; i++) {
        const struct cli_option *o = &syntax->options[i];
        char entry[64];

        if (o->letter)
            snprintf(entry, sizeof(entry), "\n*-%c*, *--%s*", o->letter, o->name);
        else
            snprintf(entry, sizeof(entry), "\n*--%s*", o->name);
        expect_in("sandglass-serve(1)", page, entry);
        snprintf(entry, sizeof(entry), "--%s", o->name);
        expect_in("the completion", completion, entry);
        EXPECT(o->help && o->help[0]);
    }
}
