/* The record: what is written, how much of it, and finding it again. */
#include "audit_rig.h"

#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/base/clock.h"

TAP_MAIN

struct page {
    char *lines[3000];
    uint64_t seqs[3000];
    size_t n, stop_at;
};

static bool take(const char *line, size_t len, uint64_t seq, void *arg)
{
    struct page *p = arg;

    if (p->n < ARRAY_SIZE(p->lines)) {
        p->seqs[p->n] = seq;
        p->lines[p->n++] = strndup(line, len);
    }
    return p->n != p->stop_at;
}

static void page_done(struct page *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->lines[i]);
    p->n = 0;
}

static size_t find(struct audit_rig *r, const struct audit_filter *f, struct page *p)
{
    struct sg_error e = {0};

    page_done(p);
    if (audit_query(r->dir, f, take, p, &e) < 0)
        printf("# %s\n", e.message);
    return p->n;
}

static json_t *line_json(const char *line)
{
    json_t *v = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

    EXPECT(v != NULL);
    return v;
}

/* ---- queries --------------------------------------------------------------------------------- */

TEST(the_newest_come_first)
{
    static struct page p;
    struct audit_rig r;

    rig_begin(&r);
    rig_write(&r, 50);
    EXPECT(find(&r, &(struct audit_filter){0}, &p) == 51);
    for (size_t i = 0; i < p.n; i++)
        EXPECT(p.seqs[i] == 51 - i);
    EXPECT(find(&r, &(struct audit_filter){.limit = 7}, &p) == 7 && p.seqs[6] == 45);
    p.stop_at = 3;
    EXPECT(find(&r, &(struct audit_filter){0}, &p) == 3);
    p.stop_at = 0;
    page_done(&p);
    rig_end(&r);
}

TEST(filters)
{
    static struct page p;
    struct audit_rig r;

    rig_begin(&r);
    r.tenants = true;
    rig_write(&r, 84); /* i = 0..83: see rig_write */
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_B}, &p) == 28);
    for (size_t i = 0; i < p.n; i++)
        EXPECT(strstr(p.lines[i], TENANT_B) && !strstr(p.lines[i], TENANT_A));
    EXPECT(find(&r, &(struct audit_filter){.sandbox = SANDBOX_A}, &p) == 56);
    EXPECT(find(&r, &(struct audit_filter){.kind = "dns"}, &p) == 42);
    EXPECT(find(&r, &(struct audit_filter){.kind = "head"}, &p) == 2);
    EXPECT(find(&r, &(struct audit_filter){.verdict = "deny"}, &p) == 21);
    EXPECT(find(&r, &(struct audit_filter){.name = "n3.a.test"}, &p) == 12);
    EXPECT(find(&r, &(struct audit_filter){.name = "N3.A.test"}, &p) == 12);
    EXPECT(find(&r, &(struct audit_filter){.name = "*.a.test"}, &p) == 84);
    EXPECT(find(&r, &(struct audit_filter){.name = "*.n3.a.test"}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.name = "a.test"}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.name = "*."}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_B, .verdict = "deny", .kind = "flow"},
                &p) == 7);
    EXPECT(find(&r, &(struct audit_filter){.tenant = "cccccccccccccccccccc"}, &p) == 0);
    page_done(&p);
    rig_end(&r);
}

TEST(times)
{
    int64_t now = clock_wall_ms();
    static struct page p;
    struct audit_rig r;

    rig_begin(&r);
    rig_write(&r, 10);
    EXPECT(find(&r, &(struct audit_filter){.from_ms = now - 1000}, &p) == 11);
    EXPECT(find(&r, &(struct audit_filter){.from_ms = now + 100000}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.to_ms = now - 1000}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.from_ms = now - 1000, .to_ms = now + 100000}, &p) ==
           11);
    EXPECT(find(&r, &(struct audit_filter){.from_ms = now + 86400000}, &p) == 0);
    page_done(&p);
    rig_end(&r);
}

static bool access_of(struct audit_rig *r, const char *tenant, unsigned file)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", tenant, rig_file(file));
    return faccessat(r->dir, path, F_OK, 0) == 0;
}

/* Page by page, everything comes once, over files that are rotated. */
TEST(cursors_over_files)
{
    static struct page p;
    struct audit_filter f = {.tenant = TENANT_A, .limit = 13};
    struct audit_rig r;
    size_t total = 0;

    rig_begin(&r);
    r.limits = (struct audit_limits){.file_bytes = 4096, .files = 100};
    r.tenants = true;
    audit_set_limits(r.log, &r.limits);
    rig_write(&r, 300);
    EXPECT(access_of(&r, TENANT_A, 10) && access_of(&r, TENANT_B, 5));
    for (uint64_t last = UINT64_MAX; find(&r, &f, &p) > 0; f.before = last) {
        for (size_t i = 0; i < p.n; i++) {
            EXPECT(p.seqs[i] < last);
            last = p.seqs[i];
        }
        total += p.n;
    }
    EXPECT(total == 200);
    page_done(&p);
    rig_end(&r);
}

/* More lines than one window of the reader. */
TEST(a_large_file)
{
    static struct page p;
    struct audit_filter f = {.limit = 2500, .kind = "dns"};
    struct audit_rig r;

    rig_begin(&r);
    for (int i = 0; i < 5; i++)
        rig_write(&r, 1000);
    EXPECT(find(&r, &f, &p) == 2500);
    for (size_t i = 1; i < p.n; i++)
        EXPECT(p.seqs[i] < p.seqs[i - 1]);
    page_done(&p);
    rig_end(&r);
}

TEST(garbage_in_the_files_is_skipped)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    AUTO(free_p) char *good = NULL;
    static struct page p;
    struct audit_rig r;
    size_t len;

    rig_begin(&r);
    rig_write(&r, 20);
    rig_close(&r);
    good = rig_load(&r, 1, &len);
    strbuf_init(&text, 4u << 20);
    for (int i = 0; i < 600000; i++)
        strbuf_addch(&text, 'x');
    strbuf_addstr(&text, "\n\n{}\n{\"seq\":1}\n\"},\"\n");
    strbuf_add(&text, good, len);
    strbuf_addstr(&text, "{\"seq\":99,\"time\":\"half");
    rig_save(&r, 1, text.buf, text.len);
    EXPECT(find(&r, &(struct audit_filter){0}, &p) == 22);
    page_done(&p);
    rig_end(&r);
}

/* ---- hostile text ---------------------------------------------------------------------------- */

/* Whatever comes, it is one line of printable ASCII, and reads back as what it was. */
static void expect_tame(const char *name, size_t name_len)
{
    AUTO(free_p) char *text = NULL, *copy = xcalloc(1, name_len + 1);
    struct audit_record rec = {.kind = "flow",
                               .sandbox = SANDBOX_A,
                               .name = copy,
                               .rule = copy,
                               .detail = copy,
                               .verdict = "deny"};
    struct audit_report report;
    struct audit_rig r;
    size_t len, line_len;

    memcpy(copy, name, name_len);
    rig_begin(&r);
    audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.records == 1);
    text = rig_load(&r, 1, &len);
    for (size_t i = 0; i < len; i++)
        EXPECT(text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f));
    char *line = rig_line(text, 2, &line_len);
    EXPECT(line + line_len == text + len && line_len < 16384);
    line[line_len - 1] = '\0';
    json_t *v = line_json(line);
    EXPECT(json_string_length(json_object_get(v, "name")) <= 3 * AUDIT_TEXT_MAX);
    EXPECT_STR(json_string_value(json_object_get(v, "verdict")), "deny");
    EXPECT_STR(json_string_value(json_object_get(v, "sandbox")), SANDBOX_A);
    json_decref(v);
    rig_end(&r);
}

TEST(hostile_names_stay_one_escaped_line)
{
    AUTO(free_p) char *huge = xcalloc(1, 65537);
    static const char *const names[] = {
        "a\r\nb",
        "\033[31mred\033[0m",
        "\xff\xfe\xc0\xaf",
        "\xc2\x9b[31m",                      /* CSI as one character */
        "\xe2\x80\xa8\xe2\x80\xae\x7f\t",    /* ends a line, turns the direction, deletes */
        "\xf0\x9f\x98\x80",                  /* beyond 16 bits */
        "\",\"verdict\":\"allow\",\"x\":\"", /* a field of its own */
        "\"}\n{\"seq\":1}",
        "\\\"\\",
        "",
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        expect_tame(names[i], strlen(names[i]));
    memset(huge, 'h', 65536);
    expect_tame(huge, 65536);
    memset(huge, '\x01', 65536);
    expect_tame(huge, 65536);
    memset(huge, '\xfe', 65536);
    expect_tame(huge, 65536);
    for (size_t i = 0; i + 2 < 65536; i += 2)
        memcpy(huge + i, "\xc3\xa9", 2); /* cut between characters, not in one */
    expect_tame(huge, 65536);
}

TEST(text_cannot_pretend_to_be_a_field)
{
    static struct page p;
    struct audit_record rec = {.kind = "flow",
                               .tenant = TENANT_A,
                               .name = "x\",\"tenant\":\"" TENANT_B "\",\"verdict\":\"allow",
                               .rule = "\",\"prev\":\"",
                               .verdict = "deny"};
    struct audit_rig r;

    rig_begin(&r);
    audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_B}, &p) == 0);
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_A}, &p) == 1);
    EXPECT(find(&r, &(struct audit_filter){.verdict = "allow"}, &p) == 0);
    page_done(&p);
    rig_end(&r);
}

TEST(characters_come_back_as_they_were)
{
    struct audit_record rec = {.kind = "flow", .name = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"};
    AUTO(free_p) char *text = NULL;
    struct audit_rig r;
    size_t len;

    rig_begin(&r);
    audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    text = rig_load(&r, 1, NULL);
    json_t *v = line_json(rig_line(text, 2, &len));
    EXPECT_STR(json_string_value(json_object_get(v, "name")), rec.name);
    json_decref(v);
    rig_end(&r);
}

/* ---- too many -------------------------------------------------------------------------------- */

/* The sum of all counts of a verdict. */
static uint64_t count_of(struct audit_rig *r, const char *verdict)
{
    AUTO(free_p) char *text = rig_load(r, 1, NULL);
    uint64_t sum = 0;
    size_t len;

    for (char *line = text; *line; line += len) {
        rig_line(line, 1, &len);
        line[len - 1] = '\0';
        json_t *v = line_json(line);
        const char *is = json_string_value(json_object_get(v, "verdict"));
        if (is && strcmp(is, verdict) == 0)
            sum += (uint64_t)json_integer_value(json_object_get(v, "count"));
        json_decref(v);
    }
    return sum;
}

TEST(equal_records_are_folded_when_there_are_many)
{
    struct audit_record rec = {
        .kind = "flow", .sandbox = SANDBOX_A, .name = "a.test", .verdict = "allow", .up = 10};
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    for (int i = 0; i < 100000; i++)
        audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records == AUDIT_PENDING_MAX / 2);
    EXPECT(count_of(&r, "allow") == 100000);

    /* Few are not. */
    for (int i = 0; i < 10; i++)
        audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records == AUDIT_PENDING_MAX / 2 + 10);
    rig_end(&r);
}

/* One at once, and one a second with what came since. */
TEST(refusals_of_one_target_are_one_entry)
{
    struct audit_record rec = {.kind = "flow",
                               .sandbox = SANDBOX_A,
                               .address = "9.9.9.9",
                               .port = 80,
                               .verdict = "deny",
                               .rule = "default deny"};
    uint64_t began = clock_ns(), seconds;
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(count_of(&r, "deny") == 1);
    for (int i = 0; i < 5000; i++) {
        audit_write(r.log, &rec);
        EXPECT(audit_flush(r.log) == 0);
    }
    rec.port = 81; /* another target */
    audit_write(r.log, &rec);
    EXPECT(audit_flush(r.log) == 0);
    seconds = (clock_ns() - began) / AUDIT_REPEAT_NS;
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records <= 2 + seconds);
    /* What has not been written yet is at the end. */
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records >= 3 && count_of(&r, "deny") == 5002);
    rig_end(&r);
}

/* The names of secrets are no detail. */
TEST(refusals_of_two_secrets_are_two)
{
    struct audit_record rec = {.kind = "secret", .sandbox = SANDBOX_A, .verdict = "deny"};
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    for (int i = 0; i < 6; i++) {
        rec.detail = i % 2 ? "one" : "two";
        audit_write(r.log, &rec);
    }
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.records == 2);
    EXPECT(count_of(&r, "deny") == 6);
    rig_end(&r);
}

TEST(different_records_are_bounded_and_every_denial_is_counted)
{
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    for (unsigned i = 0; i < 60000; i++) {
        char name[32], sandbox[ID_LEN + 1];
        struct audit_record rec = {
            .kind = "flow", .sandbox = sandbox, .name = name, .verdict = i % 2 ? "deny" : "allow"};

        snprintf(name, sizeof(name), "n%u.test", i);
        snprintf(sandbox, sizeof(sandbox), "b%019u", i % 20000);
        audit_write(r.log, &rec);
    }
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records <= AUDIT_PENDING_MAX && report.records > AUDIT_PENDING_MAX - 16);
    EXPECT(count_of(&r, "deny") == 30000 && count_of(&r, "allow") == 30000);
    rig_end(&r);
}

/* ---- tenants --------------------------------------------------------------------------------- */

static void write_of(struct audit_rig *r, const char *tenant, const char *sandbox, unsigned from,
                     unsigned n)
{
    for (unsigned i = from; i < from + n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "n%u.test", i);
        audit_write(r->log, &(struct audit_record){.kind = "flow",
                                                   .tenant = tenant,
                                                   .sandbox = sandbox,
                                                   .name = name,
                                                   .verdict = "deny"});
    }
}

/* One that is refused thousands of names does not push out what is on record of another: not in the
 * files, and not in what waits to be written. */
TEST(no_entry_is_lost_to_another_tenant)
{
    struct audit_report report;
    static struct page p;
    struct audit_rig r;

    rig_begin(&r);
    r.limits = (struct audit_limits){.file_bytes = 16384, .files = 2};
    audit_set_limits(r.log, &r.limits);
    write_of(&r, TENANT_B, SANDBOX_B, 0, 10);
    write_of(&r, TENANT_A, SANDBOX_A, 0, 100000);
    write_of(&r, TENANT_B, SANDBOX_B, 10, 10);
    EXPECT(audit_flush(r.log) == 0);
    for (unsigned i = 0; i < 20; i++) {
        write_of(&r, TENANT_A, SANDBOX_A, 200000 + 100 * i, 100);
        EXPECT(audit_flush(r.log) == 0);
    }
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_B}, &p) == 20);
    for (size_t i = 0; i < p.n; i++)
        EXPECT(strstr(p.lines[i], SANDBOX_B) && strstr(p.lines[i], "\"count\":1"));
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_A}, &p) < 300);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.chains == 2);
    EXPECT(report.removed > 8000); /* its own, and it says so */
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    page_done(&p);
    rig_end(&r);
}

TEST(numbers_tell_the_order_over_all_tenants)
{
    static struct page p;
    struct audit_rig r;

    rig_begin(&r);
    for (unsigned i = 0; i < 30; i++) {
        write_of(&r, i % 3 ? TENANT_A : i % 2 ? NULL : TENANT_B, SANDBOX_A, i, 1);
        EXPECT(audit_flush(r.log) == 0);
        if (i == 15)
            rig_reopen(&r);
    }
    EXPECT(find(&r, &(struct audit_filter){.kind = "flow"}, &p) == 30);
    for (unsigned i = 0; i < p.n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "\"n%u.test\"", 29 - i);
        EXPECT(strstr(p.lines[i], name) != NULL);
        EXPECT(i == 0 || p.seqs[i] < p.seqs[i - 1]);
    }
    page_done(&p);
    rig_end(&r);
}

/* What a version before has left in the folder above is still found. */
TEST(older_records_of_a_tenant_are_found)
{
    static struct page p;
    struct audit_rig r;
    char from[64], to[64];

    rig_begin(&r);
    write_of(&r, TENANT_A, SANDBOX_A, 0, 5);
    rig_close(&r);
    unlinkat(r.dir, rig_file(1), 0);
    snprintf(from, sizeof(from), TENANT_A "/%s", rig_file(1));
    snprintf(to, sizeof(to), "%s", rig_file(1));
    EXPECT(renameat(r.dir, from, r.dir, to) == 0);
    EXPECT(unlinkat(r.dir, TENANT_A, AT_REMOVEDIR) == 0);
    rig_reopen(&r);
    write_of(&r, TENANT_A, SANDBOX_A, 5, 5);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(find(&r, &(struct audit_filter){.tenant = TENANT_A, .kind = "flow"}, &p) == 10);
    EXPECT(strstr(p.lines[9], "n0.test") && strstr(p.lines[0], "n9.test"));
    page_done(&p);
    rig_end(&r);
}

/* ---- on the disk ----------------------------------------------------------------------------- */

static bool sync_once(struct audit_rig *r)
{
    struct audit_sync *s = audit_sync_begin(r->log);

    if (!s)
        return false;
    EXPECT(audit_sync_begin(r->log) == NULL); /* one at a time */
    audit_sync_run(s);
    EXPECT(audit_sync_end(r->log, s) == 0);
    return true;
}

TEST(what_was_written_is_synced)
{
    struct audit_rig r;

    rig_begin(&r);
    EXPECT(!sync_once(&r));
    write_of(&r, TENANT_A, SANDBOX_A, 0, 3);
    write_of(&r, TENANT_B, SANDBOX_B, 0, 3);
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(sync_once(&r));
    EXPECT(!sync_once(&r));
    /* Not for a secret that was allowed, but for one that was refused. */
    audit_write(r.log,
                &(struct audit_record){.kind = "secret", .tenant = TENANT_A, .verdict = "deny"});
    EXPECT(audit_flush(r.log) == 0);
    EXPECT(sync_once(&r));
    EXPECT(!sync_once(&r));
    /* It may be closed while the disk is waited for. */
    audit_write(r.log, &(struct audit_record){
                           .kind = "secret", .tenant = TENANT_A, .verdict = "deny", .name = "b"});
    EXPECT(audit_flush(r.log) == 0);
    struct audit_sync *s = audit_sync_begin(r.log);
    EXPECT(s != NULL);
    rig_close(&r);
    audit_sync_run(s);
    audit_sync_end(NULL, s);
    rig_end(&r);
}

/* ---- no room --------------------------------------------------------------------------------- */

/* In a child, whose files may not grow: as on a disk that is full. */
static int write_without_room(struct audit_rig *r)
{
    struct rlimit none = {.rlim_cur = 20000, .rlim_max = RLIM_INFINITY}, all = none;
    struct sg_error e;
    int first, again;

    signal(SIGXFSZ, SIG_IGN);
    if (audit_open(r->dir, &r->limits, &r->log, &e) < 0 || setrlimit(RLIMIT_FSIZE, &none) < 0)
        return 1;
    for (unsigned i = 0; i < 200; i++)
        audit_write(r->log, &(struct audit_record){
                                .kind = "flow", .verdict = "deny", .port = (uint16_t)(i + 1)});
    first = audit_flush(r->log);
    again = audit_flush(r->log);
    all.rlim_cur = RLIM_INFINITY;
    if (setrlimit(RLIMIT_FSIZE, &all) < 0 || first != -EFBIG || again != -EFBIG)
        return 2;
    if (audit_flush(r->log) != 0)
        return 3;
    audit_close(r->log);
    return 0;
}

TEST(without_room_records_wait)
{
    struct audit_report report;
    struct audit_rig r;
    int status = 0;
    pid_t pid;

    rig_begin(&r);
    rig_write(&r, 40); /* something before it */
    rig_close(&r);
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(write_without_room(&r));
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.records == 240);
    EXPECT(count_of(&r, "deny") == 210);
    rig_end(&r);
}
