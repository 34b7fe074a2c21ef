/* Which sandboxes may run without approval. The operator sets the policy; the caller gives the
 * approval. */
#include <string.h>

#include "engine/sandbox.h"

#define TARGET_MAX 500 /* what struct stage_setup has room for */

static const struct sg_policy default_policy;

static const struct sg_policy *policy_of(const struct sg_options *o)
{
    return o->policy ? o->policy : &default_policy;
}

/* Whether the path is absolute, below /, and every part of it a real name (not "." or ".."). */
static bool plain_path(const char *path)
{
    size_t names = 0;

    if (!path || path[0] != '/' || strlen(path) > TARGET_MAX)
        return false;
    for (const char *p = path; *p;) {
        size_t len = strcspn(++p, "/");
        if ((len == 1 && p[0] == '.') || (len == 2 && strncmp(p, "..", 2) == 0))
            return false;
        names += len > 0;
        p += len;
    }
    return names > 0;
}

/* Nothing works inside without these. */
static bool hides_needed(const char *path)
{
    static const char *const needed[] = {"proc", "dev"};
    const char *name = path + strspn(path, "/");
    size_t len = strcspn(name, "/");

    for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
        if (len == strlen(needed[i]) && strncmp(name, needed[i], len) == 0)
            return name[len + strspn(name + len, "/")] == '\0';
    return false;
}

static int check_mount(const struct sg_options *o, const struct sg_mount *m, struct sg_error *e)
{
    if (m->target && hides_needed(m->target))
        return err_invalid(e,
                           "mount target '%s' would hide what the sandbox needs: use one such "
                           "as /mnt/data",
                           m->target);
    if (!m->source || !plain_path(m->target))
        return err_invalid(e, "mount target '%s' must be an absolute path below / without '..'",
                           m->target ? m->target : "");
    if (m->writable && !o->approved && !policy_of(o)->allow_writable_mounts)
        return err_set(
            e, SG_ERR_DENIED, -EACCES,
            "refused by policy rule 'writable-mounts': '%s' would be writable; approve it "
            "(--approve), mount it read-only, or allow it in the policy",
            m->source);
    return 0;
}

static int check_entries(const char *what, const char *const *list, struct sg_error *e)
{
    int r = 0;

    for (; r == 0 && list && *list; list++)
        r = network_entry_check(what, *list, e);
    return r;
}

static int check_network(const struct sg_options *o, struct sg_error *e)
{
    int r;

    if (o->network == SG_NETWORK_BLOCK)
        return 0;
    if (o->network == SG_NETWORK_LIST && (!o->network_allow || !o->network_allow[0]))
        return err_invalid(
            e, "a network list with nothing in it: name what may be reached, or block it");
    r = check_entries("network_allow", o->network_allow, e);
    if (r == 0)
        r = check_entries("network_deny", o->network_deny, e);
    if (r == 0 && !o->approved && !policy_of(o)->allow_network)
        r = err_set(e, SG_ERR_DENIED, -EACCES,
                    "refused by policy rule 'network': the code would reach the network; approve "
                    "it (--approve) or allow it in the policy");
    return r;
}

int policy_check(const struct sg_options *o, struct sg_error *e)
{
    for (size_t i = 0; i < o->n_mounts; i++) {
        int r = check_mount(o, &o->mounts[i], e);
        if (r < 0)
            return r;
    }
    return check_network(o, e);
}

const char *const *policy_mount_roots(const struct sg_options *o)
{
    static const char *const default_roots[] = SG_DEFAULT_MOUNT_ROOTS;

    return policy_of(o)->mount_roots ? policy_of(o)->mount_roots : default_roots;
}
