#include "inside/sudo/request.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <linux/magic.h>

#include "inside/agent/launch.h"
#include "wire/agent.h"
#include "lib/channel/wire.h"
#include "wire/sudo.h"

extern char **environ;

#define ENV_MAX 4096
#define NOWHERE "(unreachable)" /* the kernel's word */

struct env {
    char *v[ENV_MAX];
    size_t n;
};

/* Sets "NAME=VALUE", replacing an earlier variable of that name. */
static void env_put(struct env *env, const char *variable)
{
    size_t len = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], variable, len) == 0) {
            free(env->v[i]);
            env->v[i] = xstrdup(variable);
            return;
        }
    if (env->n == ENV_MAX)
        sudo_die("more than %d environment variables", ENV_MAX);
    env->v[env->n++] = xstrdup(variable);
}

static void env_set(struct env *env, const char *name, const char *value)
{
    char *variable;

    if (asprintf(&variable, "%s=%s", name, value) < 0)
        sudo_die("out of memory");
    env_put(env, variable);
    free(variable);
}

static bool in_list(const char *list, const char *variable)
{
    size_t len = strcspn(variable, "=");

    for (const char *p = list; p && *p; p += strcspn(p, ",")) {
        p += *p == ',';
        if (strcspn(p, ",") == len && strncmp(p, variable, len) == 0)
            return true;
    }
    return false;
}

/* Keeps variables that describe the terminal and the language, and none that changes how programs
 * are loaded. */
static bool is_kept(const char *variable)
{
    static const char list[] = "TERM,COLORTERM,LANG,LANGUAGE,DISPLAY,XAUTHORITY,LINES,COLUMNS,TZ,"
                               "NO_COLOR,LS_COLORS";

    return strncmp(variable, "LC_", 3) == 0 || in_list(list, variable);
}

static void keep_environment(const struct sudo_options *o, struct env *env)
{
    for (char **v = environ; *v; v++)
        if (strchr(*v, '=') && (*v)[0] != '=' &&
            (o->keep_env || is_kept(*v) || in_list(o->keep_list, *v)))
            env_put(env, *v);
}

static void set_sudo_variables(struct env *env, const struct strbuf *command)
{
    const struct agent_user *self = agent_user_by_uid(getuid());
    char id[16];

    env_set(env, "SUDO_USER", self ? self->name : "nobody");
    snprintf(id, sizeof(id), "%u", (unsigned)getuid());
    env_set(env, "SUDO_UID", id);
    snprintf(id, sizeof(id), "%u", (unsigned)getgid());
    env_set(env, "SUDO_GID", id);
    env_set(env, "SUDO_COMMAND", command->buf);
}

static void put_environment(const struct sudo_options *o, const struct strbuf *command,
                            struct strbuf *out)
{
    static struct env env;

    keep_environment(o, &env);
    env_set(&env, "PATH", LAUNCH_PATH);
    env_set(&env, "USER", o->target->name);
    env_set(&env, "LOGNAME", o->target->name);
    env_set(&env, "SHELL", o->target->shell);
    if (!o->keep_env || o->set_home || o->login)
        env_set(&env, "HOME", o->target->home);
    set_sudo_variables(&env, command);
    for (int i = 0; i < o->n_assignments; i++)
        env_put(&env, o->assignments[i]);
    wire_put_u32(out, (uint32_t)env.n);
    for (size_t i = 0; i < env.n; i++) {
        wire_put_str(out, env.v[i]);
        free(env.v[i]);
    }
}

/* Quotes an argument for the shell of -i and -s. Variables stay unquoted, so that the target's
 * shell expands them. */
static void quote(struct strbuf *line, const char *arg)
{
    for (; *arg; arg++) {
        unsigned char c = (unsigned char)*arg;

        if (c == '\n') {
            strbuf_addstr(line, "'\n'");
            continue;
        }
        if (!isalnum(c) && c < 0x80 && !strchr("_-$/.:=,+%@", c))
            strbuf_addch(line, '\\');
        strbuf_addch(line, (char)c);
    }
}

static void put_shell(const struct sudo_options *o, struct strbuf *out)
{
    const char *shell = o->shell ? getenv("SHELL") : NULL;
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(SUDO_MESSAGE_MAX);

    if (!shell || shell[0] != '/')
        shell = o->target->shell;
    for (char **arg = o->command; *arg; arg++) {
        strbuf_addstr(&line, arg == o->command ? "" : " ");
        quote(&line, *arg);
    }
    const char *base = strrchr(shell, '/') + 1;
    char name[NAME_MAX + 2];
    snprintf(name, sizeof(name), "%s%.*s", o->login ? "-" : "", NAME_MAX, base);

    wire_put_str(out, shell);
    wire_put_u32(out, line.len > 0 ? 3 : 1);
    wire_put_str(out, name);
    if (line.len > 0) {
        wire_put_str(out, "-c");
        wire_put_str(out, line.buf);
    }
}

static void put_command(const struct sudo_options *o, struct strbuf *out)
{
    uint32_t n = 0;

    while (o->command[n])
        n++;
    wire_put_str(out, o->command[0]);
    wire_put_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        wire_put_str(out, o->command[i]);
}

/* In a world, the first sudo takes the cover off /usr (inside/stage/stage.h), and who was in there
 * still is in the cover: that directory has a path, but none that leads to it. */
static bool get_directory(char *ret, size_t cap)
{
    char path[OPS_PATH_MAX];
    struct statfs fs;

    if (getcwd(ret, cap))
        return true;
    if (syscall(SYS_getcwd, path, sizeof(path)) < 0 || strncmp(path, NOWHERE, strlen(NOWHERE)) != 0)
        return false;
    if (statfs(".", &fs) < 0 || fs.f_type != EROFS_SUPER_MAGIC_V1)
        return false;
    return (size_t)snprintf(ret, cap, "/usr%s", path + strlen(NOWHERE)) < cap;
}

static void put_directory(const struct sudo_options *o, struct strbuf *out)
{
    char cwd[OPS_PATH_MAX], joined[2 * OPS_PATH_MAX];

    if (o->login && !o->chdir) {
        wire_put_str(out, o->target->home);
        return;
    }
    if ((!o->chdir || o->chdir[0] != '/') && !get_directory(cwd, sizeof(cwd)))
        sudo_die("cannot tell the current directory: %s", strerror(errno));
    if (!o->chdir || o->chdir[0] == '/') {
        wire_put_str(out, o->chdir ? o->chdir : cwd);
        return;
    }
    snprintf(joined, sizeof(joined), "%s/%s", cwd, o->chdir);
    wire_put_str(out, joined);
}

void request_build(const struct sudo_options *o, struct strbuf *out)
{
    AUTO(strbuf_done) struct strbuf command = strbuf_upto(OPS_PATH_MAX);

    for (char **arg = o->command; *arg; arg++)
        strbuf_addf(&command, "%s%s", arg == o->command ? "" : " ", *arg);
    if (!o->command[0])
        strbuf_addstr(&command, o->target->shell);

    wire_put_str(out, o->target->name);
    put_directory(o, out);
    if (o->login || o->shell)
        put_shell(o, out);
    else
        put_command(o, out);
    put_environment(o, &command, out);
    if (out->truncated)
        sudo_die("arguments and environment are longer than %u bytes: pass them in a file",
                 SUDO_MESSAGE_MAX);
}
