/* The guard's settings, and the parts that are made from them. If a part cannot be made after a
 * change, everything stays as it was. */

#include "lib/audit/audit.h"
#include "lib/base/fd.h"
#include "guard/flow.h"
#include "guard/policy.h"
#include "guard/resolver.h"
#include "guard/warden_link.h"
#include "lib/log/log.h"
#include "lib/sanitise/sanitise.h"

#define TEXT_MAX (4u * 1024 * 1024)

static int read_text(int fd, char **ret, size_t *ret_len, struct sg_error *e)
{
    int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, TEXT_MAX, ret, ret_len);

    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "the warden's settings cannot be read: %s",
                       strerror(-r));
    return 0;
}

/* Parts made from new settings: all are put in force, or none. A resolver or sanitiser that is NULL
 * has not changed, and the old one stays: questions are under way in the resolver, and connections
 * are inspected with the sanitiser. */
struct parts {
    struct internal_set *internal;
    struct deny_set *deny;
    struct resolver *resolver;
    struct sanitiser *sanitiser;
};

static void parts_done(struct parts *p)
{
    internal_set_free(p->internal);
    deny_set_free(p->deny);
    resolver_free(p->resolver);
    sanitiser_free(p->sanitiser);
}

static void each_sandbox(struct guard *g, void (*fn)(struct sandbox *s))
{
    MAP_EACH(struct sandbox, s, &g->sandboxes, by_id)
        fn(s);
}

static void put_parts(struct guard *g, struct parts *p)
{
    struct parts old = {.internal = g->internal, .deny = g->deny};

    g->internal = steal_ptr(&p->internal);
    g->deny = steal_ptr(&p->deny);
    if (p->resolver) {
        old.resolver = g->resolver;
        g->resolver = steal_ptr(&p->resolver);
    }
    if (p->sanitiser) {
        each_sandbox(g, flows_reset_inspected);
        old.sanitiser = g->sanitiser;
        g->sanitiser = steal_ptr(&p->sanitiser);
    }
    parts_done(&old);
}

int settings_take(struct guard *g, int settings, int roots, int patterns, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL, *pem = NULL, *more = NULL;
    size_t len = 0, pem_len = 0, more_len = 0;
    AUTO(parts_done) struct parts parts = {0};
    struct settings s;
    int r = read_text(settings, &text, &len, e);

    settings_init(&s);
    if (r == 0)
        r = read_text(roots, &pem, &pem_len, e);
    if (r == 0)
        r = read_text(patterns, &more, &more_len, e);
    if (r == 0)
        r = settings_parse_text(&s, "settings", text, e);
    if (r == 0)
        r = internal_set_new(s.egress_internal, &parts.internal, e);
    if (r == 0)
        r = deny_set_new(s.egress_deny, &parts.deny, e);
    if (r == 0 && (!g->sanitiser || strcmp(more, g->patterns ? g->patterns : "") != 0))
        r = sanitiser_new(more_len ? more : NULL, &parts.sanitiser, e);
    if (r == 0 && (!g->resolver || strcmp(s.egress_dns, g->settings.egress_dns) != 0))
        r = resolver_new(g, s.egress_dns, &parts.resolver, e);
    if (r < 0)
        return r;
    put_parts(g, &parts);
    free(g->patterns);
    g->patterns = more_len ? steal_ptr(&more) : NULL;
    free(g->roots_pem);
    g->roots_pem = pem_len ? steal_ptr(&pem) : NULL;
    g->roots_len = pem_len;
    g->settings = s;
    if (g->audit)
        audit_set_limits(
            g->audit, &(struct audit_limits){.file_bytes = s.audit_size, .files = s.audit_files});
    log_set(&s);
    each_sandbox(g, sandbox_judge_again);
    return 0;
}
