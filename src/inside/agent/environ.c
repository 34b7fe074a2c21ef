#include "inside/agent/environ.h"

#include <stdio.h>
#include <string.h>

#include "inside/agent/launch.h"
#include "wire/agent.h"

#define DEFAULTS_MAX 11

void strings_done(struct strings *s)
{
    free(s->v);
    strbuf_done(&s->own);
}

/* Reads the strings, and leaves room for the defaults and the NULL. */
static int read_strings(struct wire_reader *r, struct strings *ret, struct sg_error *e)
{
    size_t n = wire_get_u32(r);

    if (n > OPS_ARGS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG,
                       "more than %d arguments, or variables: pass them in a file", OPS_ARGS_MAX);
    ret->v = calloc(n + DEFAULTS_MAX + 1, sizeof(*ret->v));
    if (!ret->v)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory: raise the memory limit");
    for (ret->n = 0; ret->n < n; ret->n++)
        ret->v[ret->n] = wire_get_str(r, OPS_ARG_MAX - 1);
    if (r->bad)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "an argument or variable is malformed, or longer than %u bytes",
                       OPS_ARG_MAX - 1);
    return 0;
}

int environ_read_args(struct wire_reader *r, struct strings *ret, struct sg_error *e)
{
    int res = read_strings(r, ret, e);

    if (res == 0 && (ret->n == 0 || ret->v[0][0] == '\0'))
        res = err_set(e, SG_ERR_INVALID, -EINVAL, "the command is empty");
    return res;
}

int environ_read_variables(struct wire_reader *r, struct strings *ret, struct sg_error *e)
{
    int res = read_strings(r, ret, e);

    for (size_t i = 0; res == 0 && i < ret->n; i++)
        if (ret->v[i][0] == '=' || !strchr(ret->v[i], '='))
            res = err_set(e, SG_ERR_INVALID, -EINVAL,
                          "the environment variable '%.100s' is not of the form NAME=VALUE",
                          ret->v[i]);
    return res;
}

static bool has_variable(const struct strings *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
            return true;
    return false;
}

int environ_add_defaults(struct strings *env, const struct agent_user *as, const char *cwd,
                         bool tty, uint32_t cpus, struct sg_error *e)
{
    char number[12];
    const char *threads = cpus > 0 ? number : NULL;
    const struct {
        const char *name, *value;
    } defaults[DEFAULTS_MAX] = {
        {"HOME", as->home},
        {"USER", as->name},
        {"LOGNAME", as->name},
        {"SHELL", as->shell},
        {"PATH", LAUNCH_PATH},
        {"LANG", "C.UTF-8"},
        {"PWD", cwd},
        {"TERM", tty ? "xterm-256color" : NULL},
        /* OpenBLAS, MKL and numexpr go by OpenMP's variable; numba and joblib do not. */
        {"OMP_NUM_THREADS", threads},
        {"NUMBA_NUM_THREADS", threads},
        {"LOKY_MAX_CPU_COUNT", threads},
    };
    size_t at[DEFAULTS_MAX], n = 0;

    snprintf(number, sizeof(number), "%u", cpus);
    strbuf_init(&env->own, 2 * OPS_PATH_MAX);
    for (size_t i = 0; i < DEFAULTS_MAX; i++)
        if (defaults[i].value && !has_variable(env, defaults[i].name)) {
            at[n++] = env->own.len;
            strbuf_addf(&env->own, "%s=%s", defaults[i].name, defaults[i].value);
            strbuf_addch(&env->own, '\0');
        }
    if (env->own.truncated)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "out of memory: raise the memory limit");
    for (size_t i = 0; i < n; i++) /* only now, as the buffer no longer moves */
        env->v[env->n++] = env->own.buf + at[i];
    return 0;
}
