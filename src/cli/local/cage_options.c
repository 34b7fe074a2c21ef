#include "cli/local/cage_options.h"

#include <limits.h>

#include "lib/text/parse.h"

#define KIB            1024ull
#define MIB            (1024 * KIB)
#define GIB            (1024 * MIB)
#define TIB            (1024 * GIB)
#define TIMEOUT_MAX_MS (24ull * 3600 * 1000)
#define PIDS_MAX       32768
#define CPUS_MIN       10u /* thousandths */
#define CPUS_MAX       (1024u * 1000)
#define USER_MAX       32
#define HOSTNAME_MAX   63

static int invalid(struct sg_error *e, const char *option, const char *value, const char *expected)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%.64s' is not %s", option, value, expected);
}

/* ---- limits ---------------------------------------------------------------------------------- */

int cage_size_between(const char *option, const char *value, uint64_t min, uint64_t max,
                      uint64_t *ret, struct sg_error *e)
{
    char low[32], high[32];
    uint64_t bytes;
    int r = parse_size(option, value, &bytes, e);

    if (r < 0)
        return r;
    if (bytes < min || bytes > max)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is not between %s and %s", option,
                       value, format_size(min, low, sizeof(low)),
                       format_size(max, high, sizeof(high)));
    *ret = bytes;
    return 0;
}

int cage_apply_memory(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    return cage_size_between("--memory", value, 16 * MIB, TIB, &o->limits.memory_bytes, e);
}

int cage_apply_disk(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    return cage_size_between("--disk", value, MIB, TIB, &o->limits.disk_bytes, e);
}

int cage_apply_timeout(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;
    uint64_t ms;
    int r = parse_duration_ms("--timeout", value, &ms, e);

    if (r < 0)
        return r;
    if (ms < 1 || ms > TIMEOUT_MAX_MS)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "--timeout '%.64s' is not between 1ms and 24h",
                       value);
    o->timeout_ms = ms;
    return 0;
}

int cage_apply_cpus(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;
    uint32_t milli;
    int r = parse_milli("--cpus", value, &milli, e);

    if (r < 0)
        return r;
    if (milli < CPUS_MIN || milli > CPUS_MAX)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "--cpus '%.64s' is not between 0.01 and 1024",
                       value);
    o->limits.cpus_milli = milli;
    return 0;
}

int cage_apply_pids(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;
    uint64_t pids;
    int r = parse_u64("--pids", value, 1, PIDS_MAX, &pids, e);

    if (r == 0)
        o->limits.pids = (uint32_t)pids;
    return r;
}

/* ---- mounts and environment ------------------------------------------------------------------ */

static char *absolute_path(const char *path, size_t len)
{
    char cwd[PATH_MAX];
    char *s;

    if (path[0] == '/')
        return strndup(path, len);
    if (!getcwd(cwd, sizeof(cwd)))
        return NULL;
    return asprintf(&s, "%s/%.*s", cwd, (int)len, path) < 0 ? NULL : s;
}

static int bad_mount(const char *value, const char *why, struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, "--mount '%.128s' %s: use SRC:DST[:ro|rw]", value,
                   why);
}

/* Only parses the paths. The library checks links and mount roots: it looks at the real file, not
 * at its name. */
int cage_apply_mount(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;
    const char *target = strchr(value, ':');
    bool writable = false;

    if (o->n_mounts == CAGE_MOUNTS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--mount: more than %d mounts", CAGE_MOUNTS_MAX);
    if (!target || target == value)
        return bad_mount(value, "has no source and target", e);
    size_t source_len = (size_t)(target++ - value), target_len = strcspn(target, ":");
    const char *mode = target + target_len;
    if (*mode == ':') {
        writable = strcmp(mode, ":rw") == 0;
        if (!writable && strcmp(mode, ":ro") != 0)
            return bad_mount(value, "has a mode other than ro and rw", e);
    }
    if (target[0] != '/' || target_len >= PATH_MAX || source_len >= PATH_MAX)
        return bad_mount(value, "needs an absolute path as its target", e);
    struct sg_mount *m = &o->mounts[o->n_mounts];
    m->source = absolute_path(value, source_len);
    if (!m->source)
        return err_errno(e, "--mount: cannot make '%.128s' absolute", value);
    m->target = strndup(target, target_len);
    m->writable = writable;
    o->n_mounts++;
    return m->target ? 0 : err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
}

int cage_apply_env(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    return env_list_set_or_copy(&o->env, "--env", value, e);
}

int cage_apply_env_file(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    if (o->n_env_files == CAGE_ENV_FILES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--env-file: more than %d files",
                       CAGE_ENV_FILES_MAX);
    o->env_files[o->n_env_files++] = value;
    return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Not empty, at most max long, and only characters that an id or a host name may have. */
static bool plain_name(const char *s, size_t max)
{
    size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= max && s[len] == '\0' && s[0] != '-' && s[0] != '.';
}

int cage_apply_user(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    if (!plain_name(value, USER_MAX))
        return invalid(e, "--user", value, "the name of a user, such as 'user' or 'root'");
    o->user = value;
    return 0;
}

int cage_apply_cwd(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    if (value[0] != '/' || strlen(value) >= PATH_MAX)
        return invalid(e, "--cwd", value, "an absolute path");
    o->cwd = value;
    return 0;
}

int cage_apply_network(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    o->network_given = true;
    return network_list_parse(&o->network, value, e);
}

int cage_apply_hostname(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    if (!plain_name(value, HOSTNAME_MAX))
        return invalid(e, "--hostname", value,
                       "a host name: at most 64 letters, digits, '-' and '.'");
    o->hostname = value;
    return 0;
}

int cage_apply_policy(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--policy: the name of the file is empty");
    o->policy = value;
    return 0;
}

int cage_apply_approve(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    (void)value, (void)e;
    o->approve = true;
    return 0;
}

int cage_apply_quiet(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    (void)value, (void)e;
    o->quiet = true;
    return 0;
}

int cage_apply_help(void *self, const char *value, struct sg_error *e)
{
    struct cage_options *o = self;

    (void)value, (void)e;
    o->help = true;
    return 0;
}

void cage_options_done(struct cage_options *o)
{
    for (size_t i = 0; i < o->n_mounts; i++) {
        free((void *)(uintptr_t)o->mounts[i].source);
        free((void *)(uintptr_t)o->mounts[i].target);
    }
    env_list_done(&o->env);
    network_list_done(&o->network);
    *o = (struct cage_options){0};
}
