/* The record: whatever is done to it is found, at the record where it was done. */
#include "audit_rig.h"

TAP_MAIN

/* The first line of a log is a head. */
#define LINES 30

static void edit_text(struct audit_rig *r, unsigned line, const char *from, const char *to)
{
    AUTO(free_p) char *text = rig_load(r, 1, NULL);
    size_t len;
    char *at = strstr(rig_line(text, line, &len), from);

    EXPECT(at != NULL && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    rig_save(r, 1, text, strlen(text));
}

static void delete_line(struct audit_rig *r, unsigned number, unsigned line)
{
    AUTO(free_p) char *text = rig_load(r, number, NULL);
    size_t len;
    char *at = rig_line(text, line, &len);

    memmove(at, at + len, strlen(at + len) + 1);
    rig_save(r, number, text, strlen(text));
}

static void swap_lines(struct audit_rig *r, unsigned line)
{
    AUTO(free_p) char *text = rig_load(r, 1, NULL), *copy = xstrdup(text);
    size_t a_len, b_len;
    char *a = rig_line(text, line, &a_len), *b = rig_line(text, line + 1, &b_len);
    char *to = copy + (a - text);

    memcpy(to, b, b_len);
    memcpy(to + b_len, a, a_len);
    rig_save(r, 1, copy, strlen(copy));
}

/* Keeps so many lines of the file, and some bytes of the next. */
static void cut_after(struct audit_rig *r, unsigned line, size_t more)
{
    AUTO(free_p) char *text = rig_load(r, 1, NULL);
    size_t len;
    char *at = rig_line(text, line, &len);

    rig_save(r, 1, text, (size_t)(at + len - text) + more);
}

static void begin_with_lines(struct audit_rig *r)
{
    rig_begin(r);
    rig_write(r, LINES);
    rig_close(r); /* 1 head, LINES records, 1 head */
}

TEST(what_was_written_is_whole)
{
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    rig_write(&r, LINES);
    EXPECT(rig_verify(&r, NULL, &report) == 0); /* while it is open */
    EXPECT(report.records == LINES && report.first_seq == 1 && report.last_seq == LINES + 1);
    EXPECT(report.heads == 1 && report.unsigned_records == LINES);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.heads == 2 && report.unsigned_records == 0 && report.bad_seq == 0);
    EXPECT(report.last_seq == LINES + 2 && strncmp(report.head, "32:", 3) == 0);
    rig_end(&r);
}

TEST(a_line_has_the_promised_form)
{
    AUTO(free_p) char *text = NULL;
    struct audit_rig r;
    size_t len;

    rig_begin(&r);
    r.tenants = true;
    rig_write(&r, LINES);
    rig_close(&r);
    EXPECT(file_read(r.dir, TENANT_A "/audit-000001.jsonl", 1u << 20, &text, NULL) == 0);
    const char *line = rig_line(text, 2, &len);
    static const char *const parts[] = {
        ",\"time\":\"20",
        "Z\",\"kind\":\"dns\",\"tenant\":\"" TENANT_A "\",\"sandbox\":\"" SANDBOX_A "\",",
        "\"name\":\"n1.a.test\",\"address\":\"93.184.216.34\",\"port\":2,\"protocol\":\"tcp\","
        "\"verdict\":\"allow\",\"rule\":\"allow a.test\",\"up\":1,"
        "\"policy\":\"9f86d081884c7d65\",\"count\":1,\"prev\":\""};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *at = strstr(line, parts[i]);
        EXPECT(at && at < line + len);
    }
    rig_end(&r);
}

TEST(a_changed_record_is_found)
{
    static const struct {
        const char *from, *to;
    } edits[] = {{"\"verdict\":\"allow\"", "\"verdict\":\"alloW\""},
                 {"93.184.216.34", "93.184.216.35"},
                 {"\"seq\":16", "\"seq\":17"},
                 {"\"time\":\"2", "\"time\":\"3"},
                 {"\"prev\":\"", "\"prev\"; "},
                 {"\"hash\":\"", "\"hash\":!"},
                 {"{\"seq\"", "[\"seq\""}};

    for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
        struct audit_rig r;

        begin_with_lines(&r);
        edit_text(&r, 16, edits[i].from, edits[i].to);
        /* A higher number may be right: numbers run over the chains of all tenants. */
        rig_expect_broken(&r, 16, i == 2 ? "the record after 15 was changed" : "record 16");
        rig_end(&r);
    }
}

TEST(every_single_byte_counts)
{
    AUTO(free_p) char *text = NULL;
    struct audit_report report;
    struct audit_rig r;
    size_t len, line_len;

    begin_with_lines(&r);
    text = rig_load(&r, 1, &len);
    size_t at = (size_t)(rig_line(text, 5, &line_len) - text);
    for (size_t i = 0; i < line_len - 1; i++) {
        text[at + i] ^= 1;
        rig_save(&r, 1, text, len);
        if (rig_verify(&r, NULL, &report) != -EBADMSG || report.bad_seq != 5)
            printf("# byte %zu of '%.*s'\n", i, (int)line_len, text + at);
        EXPECT(rig_verify(&r, NULL, &report) == -EBADMSG && report.bad_seq == 5);
        text[at + i] ^= 1;
    }
    rig_save(&r, 1, text, len);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    rig_end(&r);
}

TEST(a_record_that_was_left_out_is_found)
{
    static const unsigned lines[] = {2, 16, LINES};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct audit_rig r;

        begin_with_lines(&r);
        delete_line(&r, 1, lines[i]);
        rig_expect_broken(&r, lines[i], "is missing");
        rig_end(&r);
    }
}

TEST(the_first_line_that_was_left_out_is_found)
{
    struct audit_rig r;

    begin_with_lines(&r);
    delete_line(&r, 1, 1);
    rig_expect_broken(&r, 2, "begins in the middle");
    rig_end(&r);
}

TEST(records_that_changed_places_are_found)
{
    struct audit_rig r;

    begin_with_lines(&r);
    swap_lines(&r, 10);
    rig_expect_broken(&r, 10, "11 is in its place");
    rig_end(&r);
}

TEST(a_record_that_came_twice_is_found)
{
    AUTO(free_p) char *text = NULL;
    AUTO(strbuf_done) struct strbuf twice = {0};
    struct audit_rig r;
    size_t len;

    begin_with_lines(&r);
    text = rig_load(&r, 1, NULL);
    char *at = rig_line(text, 7, &len);
    strbuf_init(&twice, 1u << 20);
    strbuf_add(&twice, text, (size_t)(at + len - text));
    strbuf_addstr(&twice, at);
    rig_save(&r, 1, twice.buf, twice.len);
    rig_expect_broken(&r, 8, "is missing: 7 is in its place");
    rig_end(&r);
}

/* Whoever has no key can still compute hashes. */
TEST(a_record_that_was_written_anew_needs_the_key)
{
    struct audit_report report;
    struct audit_rig mine, theirs;
    AUTO(free_p) char *text = NULL, *public_key = NULL;
    struct sg_error e = {0};
    size_t len;

    begin_with_lines(&mine);
    begin_with_lines(&theirs);
    EXPECT(file_read(mine.dir, "head.pub", 4096, &public_key, NULL) == 0);
    text = rig_load(&theirs, 1, &len);
    rig_save(&mine, 1, text, len);
    rig_expect_broken(&mine, 1, "is not signed by this key");
    /* With the other key put beside it, only who has noted the right one finds it. */
    EXPECT(audit_verify(theirs.dir, NULL, NULL, &report, &e) == 0);
    EXPECT(audit_verify(theirs.dir, public_key, NULL, &report, &e) == -EBADMSG);
    EXPECT(report.bad_seq == 1);
    rig_end(&mine);
    rig_end(&theirs);
}

TEST(what_is_cut_off_after_a_noted_head_is_found)
{
    struct audit_report before, report;
    struct audit_rig r;

    begin_with_lines(&r);
    EXPECT(rig_verify(&r, NULL, &before) == 0);
    EXPECT(rig_verify(&r, before.head, &report) == 0);
    cut_after(&r, 20, 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.last_seq == 20);
    EXPECT(rig_verify(&r, before.head, &report) == -EBADMSG && report.bad_seq == 21);
    EXPECT(strstr(report.message, "cut off") != NULL);

    /* And so is what was written in its place. */
    rig_reopen(&r);
    rig_write(&r, LINES);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.last_seq > 32);
    EXPECT(rig_verify(&r, before.head, &report) == -EBADMSG && report.bad_seq == 32);
    rig_end(&r);
}

TEST(heads_that_are_none)
{
    static const char *const bad[] = {"", "32", "32:", ":abc", "32:xyz", "x:y"};
    struct audit_report report;
    struct audit_rig r;
    struct sg_error e;

    begin_with_lines(&r);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(audit_verify(r.dir, NULL, bad[i], &report, &e) == -EINVAL &&
               strstr(e.message, "SEQ:HASH"));
    EXPECT(audit_verify(r.dir, "-----BEGIN PUBLIC KEY-----\n!", NULL, &report, &e) == -EINVAL);
    rig_end(&r);
}

TEST(heads_come_every_thousand_records)
{
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    rig_write(&r, 2500);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records == 2500 && report.heads == 3 && report.unsigned_records == 500);
    rig_end(&r);
}

/* ---- crashes --------------------------------------------------------------------------------- */

TEST(a_line_that_a_crash_cut_is_removed_on_record)
{
    AUTO(free_p) char *text = NULL;
    struct audit_report report;
    struct audit_rig r;

    begin_with_lines(&r);
    cut_after(&r, 20, 37);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.last_seq == 20);
    rig_reopen(&r);
    rig_write(&r, 3);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.last_seq == 25); /* the repair, three, a head */
    text = rig_load(&r, 1, NULL);
    EXPECT(strstr(text, "\"seq\":21,") && strstr(text, "\"kind\":\"start\"") &&
           strstr(text, "\"rule\":\"unfinished record removed\",\"detail\":\"37 bytes\""));
    rig_end(&r);
}

TEST(a_file_of_which_nothing_is_left_is_gone_on_with)
{
    struct audit_report report;
    struct audit_rig r;

    begin_with_lines(&r);
    rig_save(&r, 1, "", 0);
    rig_reopen(&r);
    rig_write(&r, 3);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.records == 3 && report.first_seq == 1);
    rig_end(&r);
}

/* What a power cut can leave. It is not removed, since it could be somebody's doing. */
TEST(damage_stays_for_who_verifies_and_writing_goes_on)
{
    AUTO(free_p) char *text = NULL, *zeros = xcalloc(1, 100000);
    AUTO(strbuf_done) struct strbuf damaged = {0};
    struct audit_rig r;
    size_t len;

    begin_with_lines(&r);
    text = rig_load(&r, 1, &len);
    strbuf_init(&damaged, 1u << 20);
    strbuf_add(&damaged, text, len);
    strbuf_add(&damaged, zeros, 100000);
    rig_save(&r, 1, damaged.buf, damaged.len);
    rig_reopen(&r);
    rig_write(&r, 3);
    rig_close(&r);
    rig_expect_broken(&r, 33, "cannot be read");
    free_p(&text);
    text = rig_load(&r, 2, &len);
    EXPECT(strncmp(text, "{\"seq\":33,", 10) == 0);
    EXPECT(strstr(text, "damaged record left as it is") != NULL);
    rig_end(&r);
}

TEST(one_writes)
{
    struct audit_log *other = NULL;
    struct audit_rig r;
    struct sg_error e = {0};

    rig_begin(&r);
    EXPECT(audit_open(r.dir, &r.limits, &other, &e) == -EBUSY);
    EXPECT(strstr(e.message, "another guard") != NULL && !other);
    rig_end(&r);
}

TEST(the_key_is_nobody_elses)
{
    struct audit_rig r;
    struct stat st;

    rig_begin(&r);
    EXPECT(fstatat(r.dir, "head.key", &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    EXPECT(fstatat(r.dir, "head.pub", &st, 0) == 0 && (st.st_mode & 0777) == 0644);
    rig_write(&r, 1);
    EXPECT(fstatat(r.dir, rig_file(1), &st, 0) == 0 && (st.st_mode & 0777) == 0600);
    rig_end(&r);
}

/* ---- rotation -------------------------------------------------------------------------------- */

TEST(files_are_rotated_and_the_chain_goes_on)
{
    struct audit_report report;
    struct audit_rig r;
    struct stat st;

    rig_begin(&r);
    r.limits = (struct audit_limits){.file_bytes = 8192, .files = 4};
    rig_reopen(&r);
    rig_write(&r, 70);
    rig_reopen(&r);
    rig_write(&r, 5);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.records == 75 && report.first_seq == 1);
    rig_write(&r, 400);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    EXPECT(report.first_seq > 1 && report.records < 400 && report.records > 50);

    AUTO(free_p) char *text = NULL;
    unsigned newest = 1, files = 0;
    for (unsigned i = 1; i < 100; i++)
        if (fstatat(r.dir, rig_file(i), &st, 0) == 0) {
            files++;
            newest = i;
            EXPECT(st.st_size < 8192 + 16384);
        }
    EXPECT(files == 4 && newest > 10);

    /* A file in the middle that was taken away. */
    text = rig_load(&r, newest - 1, NULL);
    uint64_t first = strtoull(text + strlen("{\"seq\":"), NULL, 10);
    unlinkat(r.dir, rig_file(newest - 1), 0);
    rig_expect_broken(&r, first, "is missing");
    rig_end(&r);
}

TEST(the_beginning_of_the_oldest_file_cannot_be_cut_off)
{
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    r.limits = (struct audit_limits){.file_bytes = 8192, .files = 2};
    rig_reopen(&r);
    rig_write(&r, 100);
    rig_close(&r);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.first_seq > 1);
    unsigned oldest = 1;
    while (faccessat(r.dir, rig_file(oldest), F_OK, 0) < 0)
        oldest++;
    delete_line(&r, oldest, 1);
    rig_expect_broken(&r, report.first_seq + 1, "begins in the middle");
    rig_end(&r);
}

TEST(a_limit_that_is_absurd_still_makes_way)
{
    struct audit_report report;
    struct audit_rig r;

    rig_begin(&r);
    r.limits = (struct audit_limits){.file_bytes = 1, .files = 1000};
    audit_set_limits(r.log, &r.limits);
    rig_write(&r, 20);
    EXPECT(rig_verify(&r, NULL, &report) == 0 && report.records == 20 && report.heads == 20);
    rig_end(&r);
}

/* ---- tenants --------------------------------------------------------------------------------- */

static void begin_with_tenants(struct audit_rig *r)
{
    rig_begin(r);
    r->tenants = true;
    rig_write(r, LINES);
    rig_close(r);
}

static void edit_chain(struct audit_rig *r, const char *tenant,
                       void (*edit)(struct audit_rig *r, unsigned line, size_t more), unsigned line)
{
    struct audit_rig chain = *r;

    chain.dir = openat(r->dir, tenant, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    edit(&chain, line, 0);
    close(chain.dir);
}

TEST(each_tenant_has_a_chain)
{
    struct audit_report before, report;
    struct audit_rig r;

    begin_with_tenants(&r);
    EXPECT(rig_verify(&r, NULL, &before) == 0);
    EXPECT(before.chains == 2 && before.records == LINES && before.unsigned_records == 0);
    EXPECT(before.removed == 0 && before.head[0]);
    rig_reopen(&r);
    rig_write(&r, LINES);
    rig_close(&r);
    EXPECT(rig_verify(&r, before.head, &report) == 0 && report.records == 2 * LINES);
    rig_end(&r);
}

/* Without anything that was noted elsewhere: the chain above knows. */
TEST(a_chain_that_was_cut_or_taken_away_is_found)
{
    struct audit_report report;
    struct audit_rig r;

    begin_with_tenants(&r);
    edit_chain(&r, TENANT_A, cut_after, 5);
    EXPECT(rig_verify(&r, NULL, &report) == -EBADMSG);
    EXPECT(strstr(report.message, "tenant " TENANT_A ": ") && strstr(report.message, "cut off"));
    edit_chain(&r, TENANT_B, cut_after, 1);
    int dir = openat(r.dir, TENANT_A, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig_empty(dir);
    EXPECT(unlinkat(r.dir, TENANT_A, AT_REMOVEDIR) == 0);
    dir = openat(r.dir, TENANT_B, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rig_empty(dir);
    EXPECT(unlinkat(r.dir, TENANT_B, AT_REMOVEDIR) == 0);
    EXPECT(rig_verify(&r, NULL, &report) == -EBADMSG);
    EXPECT(strstr(report.message, "is missing") != NULL);
    rig_end(&r);
}

TEST(a_change_in_a_chain_is_found_where_it_is)
{
    struct audit_report report;
    struct audit_rig r, chain;
    AUTO(free_p) char *text = NULL;
    size_t len;

    begin_with_tenants(&r);
    chain = r;
    chain.dir = openat(r.dir, TENANT_A, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    text = rig_load(&chain, 1, NULL);
    uint64_t seq = strtoull(rig_line(text, 4, &len) + strlen("{\"seq\":"), NULL, 10);
    edit_text(&chain, 4, "93.184", "93.185");
    EXPECT(rig_verify(&r, NULL, &report) == -EBADMSG && report.bad_seq == seq);
    close(chain.dir);
    rig_end(&r);
}

/* Each file of the chain above says where all others are, so none is forgotten as it is rotated. */
TEST(notes_outlive_the_files_that_they_were_in)
{
    struct audit_report report;
    struct audit_rig r;

    begin_with_tenants(&r);
    r.limits = (struct audit_limits){.file_bytes = 4096, .files = 2};
    r.tenants = false;
    for (int i = 0; i < 5; i++) {
        rig_reopen(&r);
        rig_write(&r, LINES);
    }
    rig_close(&r);
    EXPECT(faccessat(r.dir, rig_file(1), F_OK, 0) < 0);
    EXPECT(rig_verify(&r, NULL, &report) == 0);
    edit_chain(&r, TENANT_A, cut_after, 5);
    EXPECT(rig_verify(&r, NULL, &report) == -EBADMSG && strstr(report.message, "cut off"));
    rig_end(&r);
}
