/* `sandglass audit` on a state directory as a server would have made it. */
#include "manage_run.h"

#include <jansson.h>

#include "lib/audit/audit.h"
#include "guard/audit_cmd.h"

TAP_MAIN

#define RUN(...) manage_run(audit_main, (const char *const[]){"audit", __VA_ARGS__, NULL})
#define TENANT   "aaaaaaaaaaaaaaaaaaaa"
#define SANDBOX  "sandboxaaaaaaaaaaaaa"
#define OTHER    "sandboxbbbbbbbbbbbbb"

static char record_dir[128];

static void write_records(void)
{
    struct audit_limits limits = {.file_bytes = 1u << 20, .files = 2};
    AUTO(close_p) int fd = open(record_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct audit_log *log = NULL;
    struct sg_error e;

    EXPECT(audit_open(fd, &limits, &log, &e) == 0);
    audit_write(log, &(struct audit_record){.kind = "flow",
                                            .tenant = TENANT,
                                            .sandbox = SANDBOX,
                                            .name = "a.test",
                                            .address = "93.184.216.34",
                                            .port = 443,
                                            .verdict = "allow",
                                            .rule = "allow a.test",
                                            .up = 812,
                                            .down = 5120});
    audit_write(log, &(struct audit_record){.kind = "dns",
                                            .tenant = TENANT,
                                            .sandbox = OTHER,
                                            .name = "evil\033[31m\r\n.test",
                                            .verdict = "deny",
                                            .rule = "default deny"});
    audit_write(log, &(struct audit_record){.kind = "flow",
                                            .tenant = TENANT,
                                            .sandbox = SANDBOX,
                                            .address = "2606:2800::1",
                                            .port = 80,
                                            .verdict = "deny",
                                            .rule = "internal address",
                                            .detail = "link-local"});
    audit_close(log);
}

static void begin(void)
{
    char guard[96];
    static const char *const files[] = {
        "audit-000001.jsonl", TENANT "/audit-000001.jsonl", TENANT, "head.pub", "head.key", ""};

    make_state();
    snprintf(guard, sizeof(guard), "%s/guard", state);
    snprintf(record_dir, sizeof(record_dir), "%s/audit", guard);
    EXPECT(mkdir(guard, 0700) == 0 && mkdir(record_dir, 0700) == 0);
    write_records();
    for (size_t i = 0; geteuid() == 0 && i < ARRAY_SIZE(files); i++) {
        char path[192];

        snprintf(path, sizeof(path), "%s/%s", record_dir, files[i]);
        EXPECT(chown(path, MANAGE_OWNER, MANAGE_OWNER) == 0);
    }
    EXPECT(geteuid() != 0 || chown(guard, MANAGE_OWNER, MANAGE_OWNER) == 0);
}

static void end(void)
{
    static const char *const files[] = {"/guard/audit/audit-000001.jsonl",
                                        "/guard/audit/" TENANT "/audit-000001.jsonl",
                                        ("/guard/audit/" TENANT),
                                        "/guard/audit/head.pub",
                                        "/guard/audit/head.key",
                                        "/guard/audit",
                                        "/guard"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[192];

        snprintf(path, sizeof(path), "%s%s", state, files[i]);
        if (unlink(path) < 0)
            rmdir(path);
    }
    remove_state();
}

/* Where the n-th line (from 0) begins. */
static const char *line_of(const char *text, unsigned n)
{
    for (; n > 0 && strchr(text, '\n'); n--)
        text = strchr(text, '\n') + 1;
    return text;
}

static size_t column(const char *line, const char *what)
{
    const char *at = strstr(line, what);

    EXPECT(at != NULL && at < strchr(line, '\n'));
    return at ? (size_t)(at - line) : 0;
}

TEST(a_table_that_lines_up)
{
    begin();
    struct outcome o = RUN("tail");
    const char *title = o.out, *first = line_of(o.out, 1), *last = line_of(o.out, 3);

    EXPECT(o.status == 0);
    EXPECT(column(title, "KIND") == column(first, "flow"));
    EXPECT(column(title, "VERDICT") == column(first, "allow"));
    EXPECT(column(title, "SANDBOX") == column(first, SANDBOX));
    EXPECT(column(title, "WHERE") == column(first, "a.test (93.184.216.34):443"));
    EXPECT(column(title, "WHERE") == column(last, "[2606:2800::1]:80"));
    EXPECT(column(title, "WHY") == column(first, "allow a.test"));
    EXPECT(column(title, "WHY") == column(last, "internal address: link-local"));
    EXPECT(strstr(first, " 812 B ") && strstr(first, " 5 KiB "));
    EXPECT(!strstr(o.out, "head"));
    /* Nothing in it drives the terminal, and there are no colours without one. */
    for (const char *p = o.out; *p; p++)
        EXPECT(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
    EXPECT(strstr(o.out, "evil?[31m??.test") != NULL);
    end();
}

TEST(filters_and_json)
{
    begin();
    struct outcome o = RUN("query", "--verdict", "deny", "--json");
    json_t *v = json_loads(line_of(o.out, 0), JSON_DISABLE_EOF_CHECK, NULL);

    EXPECT(o.status == 0 && v);
    EXPECT_STR(json_string_value(json_object_get(v, "sandbox")), OTHER);
    json_decref(v);
    v = json_loads(line_of(o.out, 1), JSON_DISABLE_EOF_CHECK, NULL);
    EXPECT_STR(json_string_value(json_object_get(v, "sandbox")), SANDBOX);
    EXPECT(line_of(o.out, 2)[0] == '\0');
    json_decref(v);
    o = RUN("query", "--kind", "head");
    EXPECT(o.status == 0 && strstr(o.out, "head"));
    o = RUN("query", "--sandbox", SANDBOX, "--tenant", TENANT, "--name", "*.test", "--since", "1h",
            "--until", "0s", "-n", "5", "--kind", "dns");
    EXPECT(o.status == 0 && o.out[0] == '\0' && strstr(o.err, "no such records"));
    o = RUN("tail", "-n1", "--kind", "flow");
    EXPECT(strstr(o.out, "2606:2800::1") && !strstr(o.out, "93.184"));
    o = RUN("query", "--since", "2100-01-01T00:00:00Z", "--json");
    EXPECT(o.status == 0 && o.out[0] == '\0' && o.err[0] == '\0');
    end();
}

TEST(verify)
{
    char path[192], key[160], head[128];

    begin();
    struct outcome o = RUN("verify", "--json");
    json_t *v = json_loads(o.out, 0, NULL);
    EXPECT(o.status == 0 && json_is_true(json_object_get(v, "whole")));
    EXPECT(json_integer_value(json_object_get(v, "records")) == 3);
    EXPECT(json_is_null(json_object_get(v, "bad")));
    snprintf(head, sizeof(head), "%s", json_string_value(json_object_get(v, "head")));
    json_decref(v);
    snprintf(key, sizeof(key), "%s/head.pub", record_dir);
    o = RUN("verify", "--key", key, "--head", head);
    EXPECT(o.status == 0 && strstr(o.out, "whole\n") && strstr(o.out, head));

    snprintf(path, sizeof(path), "%s/" TENANT "/audit-000001.jsonl", record_dir);
    AUTO(free_p) char *text = manage_load(path);
    memcpy(strstr(text, "93.184"), "93.185", 6);
    FILE *f = fopen(path, "w");
    EXPECT(f && fputs(text, f) >= 0 && fclose(f) == 0);
    o = RUN("verify");
    EXPECT(o.status == 1 && strstr(o.out, "broken at   2") &&
           strstr(o.err, "record 2 was changed"));
    o = RUN("verify", "--json");
    v = json_loads(o.out, 0, NULL);
    EXPECT(o.status == 1 && json_integer_value(json_object_get(v, "bad")) == 2);
    json_decref(v);
    o = RUN("verify", "--key", "/no/such/key");
    EXPECT(o.status == 1 && strstr(o.err, "--key '/no/such/key'"));
    end();
}

TEST(mistakes)
{
    begin();
    EXPECT(RUN("query", "--verdict", "maybe").status == 2);
    EXPECT(RUN("query", "--sandbox", "x").status == 2);
    EXPECT(RUN("query", "--since", "yesterday").status == 2);
    EXPECT(RUN("query", "--limit", "0").status == 2);
    EXPECT(RUN("query", "more").status == 2);
    EXPECT(RUN("verify", "--head", "x").status == 1);
    struct outcome o = RUN("tial");
    EXPECT(o.status == 2 && strstr(o.err, "did you mean 'tail'"));
    EXPECT(manage_run(audit_main, (const char *const[]){"audit", NULL}).status == 2);
    o = RUN("tail", "--state", "/nonexistent");
    EXPECT(o.status == 1 && strstr(o.err, "there is no server in '/nonexistent/guard/audit'"));
    o = RUN("--help");
    EXPECT(o.status == 0 && strstr(o.out, "tail|query|verify"));
    end();
}

/* What comes is shown, until we have seen enough of it. */
TEST(follow)
{
    int out[2];
    char text[16384] = "";
    size_t len = 0;
    ssize_t n;

    begin();
    EXPECT(pipe(out) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {xstrdup("audit"),   xstrdup("tail"), xstrdup("-f"),
                        xstrdup("--state"), state,           NULL};
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        _exit(audit_main(5, argv));
    }
    close(out[1]);
    while (!strstr(text, "internal address") && (n = read(out[0], text + len, 4096)) > 0)
        len += (size_t)n;
    write_records();
    while (len < sizeof(text) - 4097 && (n = read(out[0], text + len, 4096)) > 0) {
        len += (size_t)n;
        char *again = strstr(text, "internal address");
        if (again && strstr(again + 1, "internal address"))
            break;
    }
    close(out[0]); /* the next line ends it */
    write_records();
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    char *again = strstr(text, "a.test");
    EXPECT(again && strstr(again + 1, "93.184.216.34") && strstr(text, "internal address"));
    end();
}

TEST(every_option_is_documented)
{
    static const struct cli_syntax *const all[] = {&audit_tail_syntax, &audit_query_syntax,
                                                   &audit_verify_syntax};

    expect_documented(SG_SOURCE_DIR "/man/sandglass-audit.1.scd", "_sandglass_audit()", all,
                      ARRAY_SIZE(all));
}
