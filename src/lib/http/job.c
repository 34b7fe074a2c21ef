/* Jobs on threads: see http_job_begin.
 *
 * At most AT_ONCE run at once, so that the loop keeps a processor. The next job is of another party
 * than the one before, if there is any. */
#include "lib/http/impl.h"

#define AT_ONCE 2

static void start_next(struct http_server *s);

static void work(uv_work_t *w)
{
    struct http_job *j = CONTAINER_OF(w, struct http_job, work);

    j->run(j);
}

static void after_work(uv_work_t *w, int status)
{
    struct http_job *j = CONTAINER_OF(w, struct http_job, work);
    struct http_server *s = j->server;

    (void)status; /* never cancelled */
    s->n_jobs--;
    j->running = false;
    j->done(j);
    if (!s->freed)
        start_next(s);
    server_unref(s);
}

static struct http_job *choose(struct http_server *s)
{
    struct http_job *j = LIST_FIND(struct http_job, at, &s->jobs, link, at->party != s->job_party);

    return j ? j : LIST_FIRST(struct http_job, &s->jobs, link);
}

static void start_next(struct http_server *s)
{
    struct http_job *j;

    while (s->n_jobs < AT_ONCE && (j = choose(s))) {
        list_remove(&j->link);
        j->running = true;
        s->job_party = j->party;
        s->n_jobs++;
        s->n_handles++;
        if (uv_queue_work(s->loop, &j->work, work, after_work) < 0)
            abort(); /* fails only without a function to call */
    }
}

void http_job_begin(struct http_server *s, struct http_job *j, uint64_t party)
{
    j->server = s;
    j->party = party;
    list_append(&s->jobs, &j->link);
    start_next(s);
}

bool http_job_drop(struct http_job *j)
{
    if (j->running)
        return false;
    list_remove(&j->link);
    return true;
}
