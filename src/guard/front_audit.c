#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>

#include "lib/audit/audit.h"
#include "lib/base/fd.h"
#include "lib/json/fields.h"
#include "guard/front_link.h"
#include "guard/policy.h"

#define RUNNING_MAX 2 /* queries at once, so that a thread is left for syncing */
#define TENANT_MAX  4 /* queries of one tenant, with those that wait */
#define JOBS_MAX    1024
#define ANSWER_MAX  (2u * 1024 * 1024)   /* further records are on the next page */
#define ANSWER_ROOM (ANSWER_MAX + 65536) /* with the last record of a page, and the end */
#define WORD_MAX    16
#define AUDIT_DIR   "audit"

/* ---- reading the front's JSON ---------------------------------------------------------------- */

static bool is_word(const char *s)
{
    return !s || (s[0] && s[strspn(s, "abcdefghijklmnopqrstuvwxyz")] == '\0');
}

static bool one_of(const char *s, const char *const *words)
{
    while (*words && strcmp(*words, s) != 0)
        words++;
    return *words != NULL;
}

/* ---- ASK_AUDIT ------------------------------------------------------------------------------- */

static unsigned running, jobs; /* running: on threads; jobs: with those that wait */
static struct list waiting, all;

struct job {
    struct list in_waiting, in_all;
    uv_work_t work;
    struct front_asker from;
    int dir; /* the record's directory */
    struct audit_filter filter;
    char tenant[ID_LEN + 1];
    json_t *question; /* the filter's texts */
    /* While the job runs, only its thread uses these. */
    struct strbuf out;
    uint32_t found, limit;
    uint64_t last; /* seq of the last record that is in the answer */
    bool more;
    int fd, r;
    struct sg_error e;
};

static bool read_filter(struct job *job)
{
    struct fields in = {.object = job->question, .prefix = "", .strict = true};

    fields_known(&in, "sandbox", "kind", "verdict", "name", "from", "to", "before", "limit");
    const char *sandbox = field_text(&in, "sandbox", ID_LEN, NULL);
    const char *kind = field_text(&in, "kind", WORD_MAX, NULL);
    const char *verdict = field_text(&in, "verdict", WORD_MAX, NULL);
    const char *name = field_text(&in, "name", POLICY_NAME_MAX + 2, NULL);
    uint64_t from = field_count(&in, "from", 0, INT64_MAX, 0);
    uint64_t to = field_count(&in, "to", 0, INT64_MAX, 0);
    uint64_t before = field_count(&in, "before", 0, INT64_MAX, 0);
    uint64_t limit = field_count(&in, "limit", 1, AUDIT_PAGE_MAX, AUDIT_PAGE_MAX);
    if (in.r < 0 || !json_is_object(job->question) || (sandbox && !id_valid(sandbox)) ||
        !is_word(kind) || !is_word(verdict))
        return false;
    job->limit = (uint32_t)limit;
    job->filter = (struct audit_filter){
        .tenant = job->tenant,
        .sandbox = sandbox,
        .kind = kind,
        .verdict = verdict,
        .name = name,
        .from_ms = (int64_t)from,
        .to_ms = (int64_t)to,
        .before = before,
    };
    return true;
}

/* Adds a record to the answer. The query looks for one more than is wanted, which tells whether
 * there is another page. */
static bool on_record(const char *line, size_t len, uint64_t seq, void *arg)
{
    struct job *job = arg;

    if (job->found == job->limit || job->out.len > ANSWER_MAX) {
        job->more = true;
        return false;
    }
    if (job->found++ > 0)
        strbuf_addch(&job->out, ',');
    strbuf_add(&job->out, line, len);
    job->last = seq;
    return true;
}

static int write_answer(struct job *job)
{
    int fd = memfd_create("audit", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : fd_write_all(fd, job->out.buf, job->out.len);

    if (r < 0) {
        close_p(&fd);
        return err_set(&job->e, SG_ERR_LIMIT, r, "no memory for the answer: %s", strerror(-r));
    }
    job->fd = fd;
    return 0;
}

/* Runs on a thread, because reading all files may take long. */
static void work(uv_work_t *w)
{
    struct job *job = w->data;

    strbuf_init(&job->out, ANSWER_ROOM);
    strbuf_addstr(&job->out, "{\"records\":[");
    job->r = audit_query(job->dir, &job->filter, on_record, job, &job->e);
    if (job->r < 0)
        return;
    if (job->more)
        strbuf_addf(&job->out, "],\"next\":%llu}", (unsigned long long)job->last);
    else
        strbuf_addstr(&job->out, "],\"next\":null}");
    job->r = write_answer(job);
}

static void job_free(struct job *job)
{
    jobs -= list_linked(&job->in_all);
    list_remove(&job->in_all);
    json_decref(job->question);
    strbuf_done(&job->out);
    close_p(&job->dir);
    close_p(&job->fd);
    free(job);
}

static void start_waiting(struct guard *g);

static void after_work(uv_work_t *w, int status)
{
    struct job *job = w->data;
    struct guard *g = job->from.guard;

    if (status < 0)
        asker_refuse(&job->from, -EAGAIN, "the guard is about to end");
    else if (job->r < 0)
        asker_refuse(&job->from, job->r, job->e.message);
    else
        asker_answer(&job->from, 0, NULL, 0, steal_fd(&job->fd));
    job_free(job);
    running--;
    start_waiting(g);
}

/* Starts jobs that wait, the oldest first. */
static void start_waiting(struct guard *g)
{
    while (!list_empty(&waiting) && running < RUNNING_MAX) {
        struct job *job = LIST_POP(struct job, &waiting, in_waiting);

        job->dir = openat(g->dir, AUDIT_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (job->dir >= 0 && uv_queue_work(g->loop, &job->work, work, after_work) == 0) {
            running++;
            continue;
        }
        asker_refuse(&job->from, -EIO, "the record cannot be read");
        job_free(job);
    }
}

static unsigned jobs_of(const char *tenant)
{
    unsigned n = 0;

    LIST_EACH(const struct job, job, &all, in_all)
        n += strcmp(job->tenant, tenant) == 0;
    return n;
}

static void add_job(struct job *job)
{
    list_append(&waiting, &job->in_waiting);
    list_push(&all, &job->in_all);
    jobs++;
}

void front_ask_audit(const struct front_asker *from, const char *tenant, const char *text,
                     size_t len)
{
    struct job *job = NEW(struct job, .from = *from, .fd = -1, .dir = -1,
                          .question = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL));
    bool good = id_valid(tenant), many = false;

    job->work.data = job;
    if (good)
        memcpy(job->tenant, tenant, sizeof(job->tenant));
    good = good && read_filter(job);
    if (good)
        many = jobs >= JOBS_MAX || jobs_of(tenant) >= TENANT_MAX;
    /* Flush first, so that the answer has everything that happened before the question. */
    if (good && !many && from->guard->audit)
        audit_flush(from->guard->audit);
    if (good && !many) {
        add_job(job);
        start_waiting(from->guard);
        return;
    }
    if (good)
        asker_refuse(from, -EAGAIN, "too many queries of the record at once");
    else
        asker_refuse(from, -EINVAL, "the filter of the query is not valid");
    job_free(job);
}

/* ---- ASK_RECORD ------------------------------------------------------------------------------ */

void front_ask_record(struct guard *g, const char *tenant, const char *id, const char *text,
                      size_t len)
{
    static const char *const kinds[] = {"policy", "secret", "sanitise", NULL};
    static const char *const verdicts[] = {"allow", "deny", "report", NULL};
    json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    struct fields in = {.object = o, .prefix = "", .strict = true};
    struct audit_record r = {.tenant = tenant, .sandbox = id[0] ? id : NULL};

    fields_known(&in, "kind", "name", "verdict", "rule", "detail");
    r.kind = field_text(&in, "kind", WORD_MAX, NULL);
    r.name = field_text(&in, "name", AUDIT_TEXT_MAX, NULL);
    r.verdict = field_text(&in, "verdict", WORD_MAX, NULL);
    r.rule = field_text(&in, "rule", AUDIT_TEXT_MAX, NULL);
    r.detail = field_text(&in, "detail", AUDIT_TEXT_MAX, NULL);
    if (in.r == 0 && g->audit && id_valid(tenant) && (!id[0] || id_valid(id)) && r.kind &&
        one_of(r.kind, kinds) && (!r.verdict || one_of(r.verdict, verdicts)))
        audit_write(g->audit, &r);
    json_decref(o);
}
