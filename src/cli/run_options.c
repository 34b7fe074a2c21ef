#include "cli/run_options.h"

#include <limits.h>

#include "base/parse.h"

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

/* ---- where the code comes from --------------------------------------------------------------- */

static const char *source_name(enum run_source source)
{
    switch (source) {
    case RUN_SOURCE_CODE:
        return "code as an argument";
    case RUN_SOURCE_FILE:
        return "-f FILE";
    case RUN_SOURCE_STDIN:
        return "'-' (standard input)";
    case RUN_SOURCE_COMMAND:
        return "a command after '--'";
    case RUN_SOURCE_NONE:
    default:
        return "nothing";
    }
}

static int set_source(struct run_options *o, enum run_source source, const char *text,
                      struct sg_error *e)
{
    if (o->source == RUN_SOURCE_CODE && source == RUN_SOURCE_CODE)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "unexpected argument '%.64s': code is one argument, put quotes around it; a "
                       "command follows '--'",
                       text);
    if (o->source != RUN_SOURCE_NONE)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "both %s and %s are given: give one",
                       source_name(o->source), source_name(source));
    o->source = source;
    o->source_text = text;
    return 0;
}

static int positional(void *self, const char *arg, struct sg_error *e)
{
    enum run_source source = strcmp(arg, "-") == 0 ? RUN_SOURCE_STDIN : RUN_SOURCE_CODE;

    return set_source(self, source, arg, e);
}

static int apply_file(void *self, const char *value, struct sg_error *e)
{
    enum run_source source = strcmp(value, "-") == 0 ? RUN_SOURCE_STDIN : RUN_SOURCE_FILE;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--file: the name of the file is empty");
    return set_source(self, source, value, e);
}

static int apply_language(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;
    int r = sg_language_parse(value, &o->language, e);

    o->language_given = true;
    return r < 0 ? err_wrap(e, r, "--language") : 0;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static int size_between(const char *option, const char *value, uint64_t min, uint64_t max,
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

static int apply_memory(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    return size_between("--memory", value, 16 * MIB, TIB, &o->limits.memory_bytes, e);
}

static int apply_disk(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    return size_between("--disk", value, MIB, TIB, &o->limits.disk_bytes, e);
}

static int apply_output_limit(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    return size_between("--output-limit", value, 1, GIB, &o->output_limit, e);
}

static int apply_timeout(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;
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

static int apply_cpus(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;
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

static int apply_pids(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;
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

/* Links and roots are the library's concern: it looks at the real file, not at its name. */
static int apply_mount(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;
    const char *target = strchr(value, ':');
    bool writable = false;

    if (o->n_mounts == RUN_MOUNTS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--mount: more than %d mounts", RUN_MOUNTS_MAX);
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

static int apply_env(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    return env_list_set_or_copy(&o->env, "--env", value, e);
}

static int apply_env_file(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    if (o->n_env_files == RUN_ENV_FILES_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "--env-file: more than %d files",
                       RUN_ENV_FILES_MAX);
    o->env_files[o->n_env_files++] = value;
    return 0;
}

/* ---- the rest
 * ------------------------------------------------------------------------------------ */

/* Not empty, at most max long, and only characters that an id or a host name may have. */
static bool plain_name(const char *s, size_t max)
{
    size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return len > 0 && len <= max && s[len] == '\0' && s[0] != '-' && s[0] != '.';
}

static int apply_user(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    if (!plain_name(value, USER_MAX))
        return invalid(e, "--user", value, "the name of a user, such as 'user' or 'root'");
    o->user = value;
    return 0;
}

static int apply_cwd(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    if (value[0] != '/' || strlen(value) >= PATH_MAX)
        return invalid(e, "--cwd", value, "an absolute path");
    o->cwd = value;
    return 0;
}

static int apply_network(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    return network_list_parse(&o->network, value, e);
}

static int apply_hostname(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    if (!plain_name(value, HOSTNAME_MAX))
        return invalid(e, "--hostname", value,
                       "a host name: at most 64 letters, digits, '-' and '.'");
    o->hostname = value;
    return 0;
}

static int apply_policy(void *self, const char *value, struct sg_error *e)
{
    struct run_options *o = self;

    if (!*value)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "--policy: the name of the file is empty");
    o->policy = value;
    return 0;
}

#define FLAG(name, field)                                                      \
    static int apply_##name(void *self, const char *value, struct sg_error *e) \
    {                                                                          \
        struct run_options *o = self;                                          \
                                                                               \
        (void)value, (void)e;                                                  \
        o->field = true;                                                       \
        return 0;                                                              \
    }
FLAG(approve, approve)
FLAG(tty, tty)
FLAG(json, json)
FLAG(quiet, quiet)
FLAG(help, help)

static const struct cli_option options[] = {
    {"file", 'f', "FILE", "run the code in FILE; its suffix gives the language", apply_file},
    {"language", 'l', "LANG", "python (default), javascript, typescript, bash", apply_language},
    {"timeout", 0, "TIME", "wall-clock limit: 500ms, 30s (default), 5m, 1h", apply_timeout},
    {"memory", 'm', "SIZE", "memory limit: 64M, 1G (default)", apply_memory},
    {"cpus", 0, "N", "processor time per second: 0.5, 1 (default), 2", apply_cpus},
    {"pids", 0, "N", "limit of processes and threads (default 512)", apply_pids},
    {"disk", 0, "SIZE", "limit of files written (default 512M), kept in memory", apply_disk},
    {"output-limit", 0, "SIZE", "bytes kept of each stream (default 8M)", apply_output_limit},
    {"mount", 'v', "SRC:DST[:ro|rw]", "show a host directory or file inside (default ro)",
     apply_mount},
    {"env", 'e', "NAME[=VALUE]", "set a variable, or copy it from the environment", apply_env},
    {"env-file", 0, "FILE", "set variables from lines NAME=VALUE", apply_env_file},
    {"user", 'u', "NAME", "user (default) or root, inside the sandbox", apply_user},
    {"cwd", 'w', "DIR", "directory to start in (default: the user's home)", apply_cwd},
    {"hostname", 0, "NAME", "host name inside (default sandbox)", apply_hostname},
    {"network", 0, "block|allow|LIST", "what may be reached (default block)", apply_network},
    {"approve", 0, NULL, "agree to what the policy does not allow by itself", apply_approve},
    {"policy", 0, "FILE", "policy to use (default /etc/sandglass/policy)", apply_policy},
    {"tty", 't', NULL, "run on a pseudo-terminal", apply_tty},
    {"json", 0, NULL, "print one JSON object with the result", apply_json},
    {"quiet", 'q', NULL, "no remark on limits that were reached", apply_quiet},
    {"help", 'h', NULL, "show this text", apply_help},
};

const struct cli_syntax run_syntax = {options, ARRAY_SIZE(options), positional};

/* ---- all together
 * --------------------------------------------------------------------------------- */

static int check_whole(const struct run_options *o, struct sg_error *e)
{
    if (o->source == RUN_SOURCE_NONE)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "nothing to run: give CODE, -f FILE, '-' for standard input, or -- CMD");
    if (o->source == RUN_SOURCE_COMMAND && o->language_given)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "--language is for code; a command after '--' runs as it is");
    if (o->tty && o->json)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "--tty and --json exclude each other: a terminal needs its output live");
    return 0;
}

static int parse_into(struct run_options *o, int argc, char **argv, struct sg_error *e)
{
    char **rest;
    int r = cli_parse(&run_syntax, argc, argv, o, &rest, e);

    if (r < 0 || o->help)
        return r;
    if (rest && !*rest)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "no command after '--'");
    if (rest) {
        r = set_source(o, RUN_SOURCE_COMMAND, *rest, e);
        if (r < 0)
            return r;
        o->command = rest;
    }
    return check_whole(o, e);
}

int run_options_parse(int argc, char **argv, struct run_options *ret, struct sg_error *e)
{
    struct run_options o = {.language = SG_PYTHON, .timeout_ms = RUN_DEFAULT_TIMEOUT_MS};
    int r = parse_into(&o, argc, argv, e);

    if (r < 0) {
        run_options_done(&o);
        return r;
    }
    *ret = o;
    return 0;
}

void run_options_done(struct run_options *o)
{
    for (size_t i = 0; i < o->n_mounts; i++) {
        free((void *)(uintptr_t)o->mounts[i].source);
        free((void *)(uintptr_t)o->mounts[i].target);
    }
    env_list_done(&o->env);
    network_list_done(&o->network);
    *o = (struct run_options){0};
}
