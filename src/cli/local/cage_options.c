#include "cli/local/cage_options.h"

#include <limits.h>

#include "lib/text/parse.h"
#include "engine/sandbox.h"

#define PIDS_MAX      32768
#define CPUS_MIN      10u /* thousandths */
#define CPUS_MAX      (1024u * 1000)
#define USER_MAX      32
#define HOSTNAME_MAX  63
#define NAME_TEXT_MAX 32 /* "--output-limit" */

/* ---- limits ---------------------------------------------------------------------------------- */

int cage_size(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    char name[NAME_TEXT_MAX], low[32], high[32];
    uint64_t bytes;

    snprintf(name, sizeof(name), "--%s", o->name);
    int r = parse_size(name, value, &bytes, e);
    if (r < 0)
        return r;
    if (bytes < o->least || bytes > o->most)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is not between %s and %s", name,
                       value, format_size(o->least, low, sizeof(low)),
                       format_size(o->most, high, sizeof(high)));
    *(uint64_t *)to = bytes;
    return 0;
}

int cage_cpus(void *to, const struct cli_option *o UNUSED, const char *value, struct sg_error *e)
{
    uint32_t milli;
    int r = parse_milli("--cpus", value, &milli, e);

    if (r < 0)
        return r;
    if (milli < CPUS_MIN || milli > CPUS_MAX)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "--cpus '%.64s' is not between 0.01 and 1024",
                       value);
    *(uint32_t *)to = milli;
    return 0;
}

int cage_pids(void *to, const struct cli_option *o UNUSED, const char *value, struct sg_error *e)
{
    uint64_t pids;
    int r = parse_u64("--pids", value, 1, PIDS_MAX, &pids, e);

    if (r == 0)
        *(uint32_t *)to = (uint32_t)pids;
    return r;
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static int bad_mount(const char *value, const char *why, struct sg_error *e)
{
    return err_invalid(e, "--mount '%.128s' %s: use SRC:DST[:ro|rw]", value, why);
}

/* Only parses the paths, and leaves them as they are: errors name what the user wrote. The library
 * checks links and mount roots: it looks at the real file, not at its name. */
int cage_mount(void *self, const struct cli_option *option UNUSED, const char *value,
               struct sg_error *e)
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
    m->source = strndup(value, source_len);
    m->target = strndup(target, target_len);
    m->writable = writable;
    o->n_mounts++;
    return m->source && m->target ? 0 : err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
}

/* ---- network --------------------------------------------------------------------------------- */

void network_list_done(struct network_list *l)
{
    free(l->allow);
    free(l->deny);
    free(l->text);
    *l = (struct network_list){0};
}

/* Refuses a name without a dot: nobody could look it up, and the user probably mistyped a word. */
static int check_entry(const char *entry, struct sg_error *e)
{
    if (strcmp(entry, "allow") == 0 || strcmp(entry, "block") == 0)
        return err_invalid(e, "--network: '%s' stands alone: leave it out of the list", entry);
    if (!strpbrk(entry, ".:"))
        return err_invalid(e,
                           "--network '%.64s' is not 'block', 'allow' or a list such as "
                           "example.com,*.example.org,192.0.2.0/24",
                           entry);
    return network_entry_check("--network", entry, e);
}

static int parse_entries(struct network_list *l, struct sg_error *e)
{
    size_t n_allow = 0, n_deny = 0;
    char *rest = l->text, *entry;

    while ((entry = strsep(&rest, ","))) {
        bool denied = entry[0] == '!';
        int r = check_entry(entry + denied, e);
        if (r < 0)
            return r;
        if (n_allow + n_deny == NETWORK_LIST_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "--network: more than %d entries",
                           NETWORK_LIST_MAX);
        if (denied)
            l->deny[n_deny++] = entry + 1;
        else
            l->allow[n_allow++] = entry;
    }
    l->mode = n_allow > 0 ? SG_NETWORK_LIST : SG_NETWORK_ALLOW;
    return 0;
}

int network_list_parse(struct network_list *l, const char *value, struct sg_error *e)
{
    network_list_done(l);
    if (strcmp(value, "block") == 0 || strcmp(value, "allow") == 0) {
        l->mode = value[0] == 'a' ? SG_NETWORK_ALLOW : SG_NETWORK_BLOCK;
        return 0;
    }
    l->text = xstrdup(value);
    l->allow = xcalloc(NETWORK_LIST_MAX + 1, sizeof(*l->allow));
    l->deny = xcalloc(NETWORK_LIST_MAX + 1, sizeof(*l->deny));
    return parse_entries(l, e);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* Not empty, at most max long, and only characters that an id or a host name may have. */
static bool plain_name(const char *s, size_t max)
{
    size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= max && s[len] == '\0' && s[0] != '-' && s[0] != '.';
}

static int invalid(const struct cli_option *o, const char *value, const char *expected,
                   struct sg_error *e)
{
    return err_invalid(e, "--%s '%.64s' is not %s", o->name, value, expected);
}

int cage_user(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    return plain_name(value, USER_MAX)
               ? cli_text(to, o, value, e)
               : invalid(o, value, "the name of a user, such as 'user' or 'root'", e);
}

int cage_cwd(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    return value[0] == '/' && strlen(value) < PATH_MAX ? cli_text(to, o, value, e)
                                                       : invalid(o, value, "an absolute path", e);
}

int cage_hostname(void *to, const struct cli_option *o, const char *value, struct sg_error *e)
{
    return plain_name(value, HOSTNAME_MAX)
               ? cli_text(to, o, value, e)
               : invalid(o, value, "a host name: at most 64 letters, digits, '-' and '.'", e);
}

int cage_network(void *self, const struct cli_option *option UNUSED, const char *value,
                 struct sg_error *e)
{
    struct cage_options *o = self;

    o->network_given = true;
    return network_list_parse(&o->network, value, e);
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
