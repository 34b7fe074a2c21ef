#include "guard/audit_cmd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <time.h>

#include "lib/audit/audit.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "lib/command/ui.h"
#include "lib/command/when.h"

#define AUDIT_WHERE    "guard/audit"
#define TAIL_DEFAULT   20
#define QUERY_DEFAULT  100
#define LINES_MAX      100000
#define FOLLOW_LINES   10000 /* new lines that one look may find */
#define FOLLOW_WAIT_NS 250000000
#define PEM_MAX        4096

struct audit_options {
    struct action_options base;
    struct audit_filter filter;
    bool follow;
    const char *key_file, *head;
};

/* ---- options --------------------------------------------------------------------------------- */

static int take_id(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    if (!id_valid(value))
        return err_invalid(e, "--%s '%.64s' is not an id: an id has %d letters and digits", o->name,
                           value, ID_LEN);
    return cli_text(to, o, value, e);
}

static int take_time(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    int64_t *ret = to;
    uint64_t ms;

    if (when_parse_ms(value, ret) == 0 && *ret > 0)
        return 0;
    if (parse_duration_ms(o->name, value, &ms, NULL) < 0 || ms > (uint64_t)clock_wall_ms())
        return err_invalid(e, "--%s '%.64s' is not a time: use 30s, 5m, 1h or 2026-03-01T12:00:00Z",
                           o->name, value);
    *ret = clock_wall_ms() - (int64_t)ms;
    return 0;
}

static int take_limit(void *to, const struct cli_option *o UNUSED, const char *value,
                      struct sg_error *e)
{
    uint64_t n;
    int r = parse_u64("--limit", value, 1, LINES_MAX, &n, e);

    if (r == 0)
        *(uint32_t *)to = (uint32_t)n;
    return r;
}

#define FILTER_OPTIONS                                                                      \
    {"sandbox", 0, "ID", "records of this sandbox",                                         \
     CLI_AT(take_id, audit_options, filter.sandbox)},                                       \
        {"tenant", 0, "ID", "records of this tenant",                                       \
         CLI_AT(take_id, audit_options, filter.tenant)},                                    \
        {"kind", 0, "KIND",                                                                 \
         "flow, dns, request, policy, secret, token, sanitise, quota, start, stop or head", \
         CLI_TEXT(audit_options, filter.kind)},                                             \
        {"verdict", 0, "VERDICT", "allow, deny or report",                                  \
         CLI_WORD(audit_options, filter.verdict, "allow|deny|report")},                     \
    {                                                                                       \
        "name", 0, "NAME", "about this name, or names below it: *.a.test",                  \
            CLI_TEXT(audit_options, filter.name)                                            \
    }
#define LIMIT CLI_AT(take_limit, audit_options, filter.limit)

static const struct cli_option tail_options[] = {
    {"follow", 'f', NULL, "keep running and show new records", CLI_FLAG(audit_options, follow)},
    FILTER_OPTIONS,
    {"limit", 'n', "NUMBER", "number of records (20)", LIMIT},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option query_options[] = {
    FILTER_OPTIONS,
    {"since", 0, "TIME", "records since: 1h (ago) or 2026-03-01T12:00:00Z",
     CLI_AT(take_time, audit_options, filter.from_ms)},
    {"until", 0, "TIME", "not after", CLI_AT(take_time, audit_options, filter.to_ms)},
    {"limit", 'n', "NUMBER", "number of records, the newest ones (100)", LIMIT},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
static const struct cli_option verify_options[] = {
    {"key", 0, "FILE", "public key to trust, instead of the one beside the record",
     CLI_TEXT(audit_options, key_file)},
    {"head", 0, "SEQ:HASH", "a head that you noted before and that must still be there",
     CLI_TEXT(audit_options, head)},
    ACTION_STATE,
    ACTION_JSON,
    ACTION_HELP,
};
const struct cli_syntax audit_tail_syntax = {tail_options, ARRAY_SIZE(tail_options), NULL, 0};
const struct cli_syntax audit_query_syntax = {query_options, ARRAY_SIZE(query_options), NULL, 0};
const struct cli_syntax audit_verify_syntax = {verify_options, ARRAY_SIZE(verify_options), NULL, 0};

/* ---- tail and query -------------------------------------------------------------------------- */

/* Lines as the query finds them, the newest first; people want to read the oldest first. */
struct lines {
    char **at;
    size_t n, cap, max;
    uint64_t newest; /* seq of the newest line seen, in this query or before */
    uint64_t stop;   /* seq of the last line that was shown already */
    bool heads;      /* records of the kinds head and chain are wanted too */
};

static bool collect(const char *line, size_t len, uint64_t seq, void *arg)
{
    static const char head[] = "\"kind\":\"head\"", chain[] = "\"kind\":\"chain\"";
    struct lines *l = arg;

    if (seq <= l->stop)
        return false;
    if (seq > l->newest)
        l->newest = seq;
    if (!l->heads &&
        (memmem(line, len, head, strlen(head)) || memmem(line, len, chain, strlen(chain))))
        return true;
    l->at = xgrow(l->at, l->n, &l->cap, sizeof(l->at[0]));
    l->at[l->n] = strndup(line, len);
    return l->at[l->n] && ++l->n < l->max;
}

static void show_and_forget(struct lines *l, enum audit_form form)
{
    while (l->n > 0) {
        AUTO(free_p) char *line = l->at[--l->n];
        audit_show(line, strlen(line), form);
    }
}

static enum audit_form form_of(const struct audit_options *o)
{
    return o->base.json ? AUDIT_JSON : ui_has_colour(STDOUT_FILENO) ? AUDIT_COLOURS : AUDIT_TABLE;
}

/* Looks for new lines again and again, until the reader of our output is gone. */
static int follow(int dir, const struct audit_filter *f, struct lines *l, enum audit_form form,
                  struct sg_error *e)
{
    int r = 0;

    l->max = FOLLOW_LINES;
    while (r == 0 && fflush(stdout) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = FOLLOW_WAIT_NS}, NULL);
        l->stop = l->newest;
        r = audit_query(dir, f, collect, l, e);
        show_and_forget(l, form);
    }
    return r;
}

static int open_record(const struct audit_options *o, int *ret, struct sg_error *e)
{
    char dir[ACTION_DIR_MAX];
    int r = action_enter(&o->base, AUDIT_WHERE, "records", dir, e);

    if (r < 0)
        return r;
    *ret = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? err_errno(e, "open '%s'", dir) : 0;
}

static int list(const struct audit_options *o, uint32_t limit, struct sg_error *e)
{
    AUTO(close_p) int dir = -1;
    struct audit_filter f = o->filter;
    struct lines l = {.max = f.limit ? f.limit : limit, .heads = f.kind != NULL};
    enum audit_form form = form_of(o);
    int r = open_record(o, &dir, e);

    f.limit = 0;
    if (r == 0)
        r = audit_query(dir, &f, collect, &l, e);
    if (r == 0) {
        if (l.n > 0 || o->follow)
            audit_show_title(form);
        else if (form != AUDIT_JSON)
            ui_note("there are no such records");
        show_and_forget(&l, form);
    }
    if (r == 0 && o->follow)
        r = follow(dir, &f, &l, form, e);
    free(l.at);
    return r;
}

/* ---- verify ---------------------------------------------------------------------------------- */

static void json_text(struct json *j, const char *key, const char *text)
{
    jw_string(jw_key(j, key), text[0] ? text : NULL);
}

static void print_report_json(const struct audit_report *r)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    jw_bool(jw_key(&j, "whole"), r->bad_seq == 0);
    jw_u64(jw_key(&j, "records"), r->records);
    jw_u64(jw_key(&j, "first"), r->first_seq);
    jw_u64(jw_key(&j, "last"), r->last_seq);
    jw_u64(jw_key(&j, "heads"), r->heads);
    jw_u64(jw_key(&j, "tenants"), r->chains);
    jw_u64(jw_key(&j, "removed"), r->removed);
    jw_u64(jw_key(&j, "unsigned"), r->unsigned_records);
    json_text(&j, "head", r->head);
    jw_key(&j, "bad");
    if (r->bad_seq)
        jw_u64(&j, r->bad_seq);
    else
        jw_null(&j);
    json_text(&j, "message", r->message);
    jw_object_end(&j);
    puts(out.buf);
}

static void print_report(const struct audit_report *r)
{
    bool colours = ui_has_colour(STDOUT_FILENO);

    printf("%s%s%s\n", colours ? (r->bad_seq ? "\033[31m" : "\033[32m") : "",
           r->bad_seq ? "broken" : "whole", colours ? "\033[0m" : "");
    printf("  records     %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")\n", r->records, r->first_seq,
           r->last_seq);
    printf("  tenants     %" PRIu64 "\n", r->chains);
    if (r->removed)
        printf("  removed     %" PRIu64 ", older than the oldest kept\n", r->removed);
    printf("  heads       %" PRIu64 "\n", r->heads);
    printf("  not signed  %" PRIu64 "%s\n", r->unsigned_records,
           r->unsigned_records ? ", after the last heads" : "");
    if (r->head[0])
        printf("  last head   %s\n", r->head);
    if (r->bad_seq)
        printf("  broken at   %" PRIu64 "\n", r->bad_seq);
}

static int verify(const struct audit_options *o, struct sg_error *e)
{
    AUTO(free_p) char *pem = NULL;
    AUTO(close_p) int dir = -1;
    struct audit_report report;
    int r = 0;

    /* Reads the key as the caller's user and from the caller's directory, before both change. */
    if (o->key_file) {
        r = file_read(AT_FDCWD, o->key_file, PEM_MAX, &pem, NULL);
        if (r < 0)
            return err_code(e, r, "cannot read --key '%s'", o->key_file);
    }
    r = open_record(o, &dir, e);
    if (r < 0)
        return r;
    r = audit_verify(dir, pem, o->head, &report, e);
    if (r == 0 || r == -EBADMSG) {
        if (o->base.json)
            print_report_json(&report);
        else
            print_report(&report);
    }
    return r;
}

/* ---- the three actions ----------------------------------------------------------------------- */

enum { TAIL, QUERY, VERIFY };
static const struct action actions[] = {
    [TAIL] = {"tail", "", "Shows the last records.", &audit_tail_syntax, NULL},
    [QUERY] = {"query", "", "Shows records that match.", &audit_query_syntax, NULL},
    [VERIFY] = {"verify", "", "Checks that nothing was changed, left out or moved.",
                &audit_verify_syntax, NULL},
};

static int run(const void *arg UNUSED, size_t i, const void *options, struct sg_error *e)
{
    if (i == VERIFY)
        return verify(options, e);
    return list(options, i == TAIL ? TAIL_DEFAULT : QUERY_DEFAULT, e);
}

int audit_main(int argc, char **argv)
{
    static const struct action_verb verb = {
        .name = "audit",
        .summary = "Shows the record: connections, DNS questions and requests of sandboxes, "
                   "allowed and refused.",
        .actions = actions,
        .n_actions = ARRAY_SIZE(actions),
        .options_size = sizeof(struct audit_options),
        .run = run,
    };

    return actions_main(&verb, argc, argv);
}
