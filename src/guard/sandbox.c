/* The sandboxes that the guard knows: their listeners and their policies. */

#include "lib/base/fd.h"
#include "guard/dns.h"
#include "guard/flow.h"
#include "guard/identity.h"
#include "lib/uv/handle.h"
#include "guard/learned.h"
#include "guard/policy.h"
#include "guard/warden_link.h"
#include "lib/log/log.h"

#define REST_NS 5000000ull

struct sandbox *sandbox_find(struct guard *g, const char *id)
{
    return MAP_FIND(struct sandbox, s, &g->sandboxes, hash_text(0, id), by_id,
                    strcmp(s->id, id) == 0);
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
    s->refs++;
    return s;
}

void sandbox_unref(struct sandbox *s)
{
    if (--s->refs > 0)
        return;
    policy_unref(s->policy);
    fakes_free(s->fakes);
    learned_free(s->learned);
    identity_unref(s->identity);
    free(s);
}

static int read_policy(struct guard *g, int document, struct policy **ret, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;
    int r = lseek(document, 0, SEEK_SET) < 0
                ? -errno
                : fd_read_all(document, GUARD_DOCUMENT_MAX, &text, &len);

    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "the policy cannot be read: %s", strerror(-r));
    r = (g->of_one_caller ? policy_parse_plain : policy_parse)(text, len, g->key, ret, e);
    if (text)
        explicit_bzero(text, len);
    return r;
}

static void record_policy(struct sandbox *s, const char *what)
{
    RECORD(s, .kind = "policy", .allowed = true, .rule = what);
}

static void on_rested(uv_timer_t *t);

/* Stops watching a listener for REST_NS. A sandbox that connects faster than its quota allows has
 * to wait, so that the guard has time for the others. */
static void rest(struct sandbox *s, uv_poll_t *listener, uv_poll_cb fn)
{
    watch_for(listener, 0, fn);
    if (!s->rest)
        s->rest = alarm_new(s->guard->loop, s);
    if (!uv_is_active((uv_handle_t *)s->rest))
        alarm_set(s->rest, REST_NS, on_rested);
}

static void on_tcp(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    if (!flows_accept(w->data))
        rest(w->data, w, on_tcp);
}

static void on_udp(uv_poll_t *w, int status UNUSED, int events UNUSED)
{
    if (!udp_receive(w->data))
        rest(w->data, w, on_udp);
}

static void listen_to(struct sandbox *s)
{
    watch_for(s->tcp_poll, UV_READABLE, on_tcp);
    watch_for(s->udp_poll, UV_READABLE, on_udp);
}

static void on_rested(uv_timer_t *t)
{
    listen_to(t->data);
}

/* Removes a sandbox from the table, with its flows, its listeners and the table's reference. */
static void take_out(struct sandbox *s)
{
    struct guard *g = s->guard;

    map_remove(&g->sandboxes, &s->by_id);
    g->n_sandboxes--;
    s->gone = true;
    flows_reset_all(s, "the sandbox has ended");
    udp_reset_all(s);
    watch_drop(&s->tcp_poll);
    watch_drop(&s->udp_poll);
    alarm_drop(&s->rest);
    close_p(&s->tcp);
    close_p(&s->udp);
    s->tcp = s->udp = -1;
    sandbox_unref(s);
}

/* If the policy cannot be read, nothing gets out: the guard closes the listeners, and the kernel
 * refuses whatever connects. */
void sandbox_add(struct guard *g, const struct guard_message *m, int tcp, int udp, int document)
{
    struct sandbox *old = sandbox_find(g, m->id), *s;
    struct policy *policy = NULL;
    struct sg_error e = {0};

    if (old)
        take_out(old);
    if (read_policy(g, document, &policy, &e) < 0) {
        log_line(LEVEL_ERROR, "guard: sandbox %s has no network: %s", m->id, e.message);
        close_p(&tcp);
        close_p(&udp);
        return;
    }
    s = NEW(struct sandbox, .guard = g, .life = m->life, .epoch = m->epoch,
            .path = (enum egress_path)m->path, .tcp = tcp, .udp = udp, .policy = policy, .refs = 1);
    memcpy(s->id, m->id, sizeof(s->id));
    memcpy(s->tenant, m->tenant, sizeof(s->tenant));
    map_add(&g->sandboxes, &s->by_id, hash_text(0, s->id));
    g->n_sandboxes++;
    s->tcp_poll = watch_new(g->loop, tcp, s);
    s->udp_poll = watch_new(g->loop, udp, s);
    listen_to(s);
    record_policy(s, "in force");
}

void sandbox_judge_again(struct sandbox *s)
{
    flows_judge_again(s);
    udp_judge_again(s);
}

int sandbox_set_policy(struct guard *g, const struct guard_message *m, int document,
                       struct sg_error *e)
{
    struct sandbox *s = sandbox_find(g, m->id);
    struct policy *policy = NULL, *old;
    int r;

    if (!s || s->life != m->life)
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "the sandbox is unknown to the guard");
    r = read_policy(g, document, &policy, e);
    if (r < 0)
        return r;
    old = s->policy;
    s->policy = policy;
    s->epoch = m->epoch;
    sandbox_judge_again(s);
    policy_unref(old);
    record_policy(s, "changed");
    return 0;
}

void sandbox_remove(struct guard *g, const struct guard_message *m)
{
    struct sandbox *s = sandbox_find(g, m->id);

    if (s && s->life == m->life)
        take_out(s);
}
