#include "lib/command/actions.h"

#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/text/strbuf.h"
#include "lib/command/state_dir.h"
#include "lib/command/suggest.h"
#include "lib/command/ui.h"

#define ACTIONS_MAX 8
#define NAMES_MAX   256

/* ---- options --------------------------------------------------------------------------------- */

int action_apply_which(void *self, const char *arg, struct sg_error *e)
{
    struct action_options *o = self;

    if (o->which)
        return err_invalid(e, "unexpected argument '%.64s': name one at a time", arg);
    o->which = arg;
    return 0;
}

/* ---- the directory --------------------------------------------------------------------------- */

static int become_owner(const char *dir, const char *things, struct sg_error *e)
{
    AUTO(close_p) int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, SG_ERR_NOT_FOUND, -ENOENT,
                       "there is no server in '%s': start one with 'sandglass serve', or name its "
                       "directory with --state",
                       dir);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return err_errno(e, "open '%s'", dir);
    if (fd < 0 ? errno == EACCES : geteuid() != st.st_uid && geteuid() != 0)
        return err_set(e, SG_ERR_DENIED, -EACCES, "%s in '%s' are root's to manage: use sudo",
                       things, dir);
    /* Enters the directory before it becomes that user, who may not be able to if the directories
     * above belong to root alone. */
    if (fd < 0 || fchdir(fd) < 0)
        return err_errno(e, "open '%s'", dir);
    if (geteuid() == st.st_uid)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(st.st_gid, st.st_gid, st.st_gid) < 0 ||
        setresuid(st.st_uid, st.st_uid, st.st_uid) < 0)
        return err_errno(e, "become user %u, who owns '%s'", st.st_uid, dir);
    return 0;
}

int action_enter(const struct action_options *o, const char *what, const char *things,
                 char ret_dir[ACTION_DIR_MAX], struct sg_error *e)
{
    char state[STATE_DIR_MAX];
    int r = state_dir_find(o->state, state, e);

    if (r < 0)
        return r;
    snprintf(ret_dir, ACTION_DIR_MAX, "%s/%s", state, what);
    return become_owner(ret_dir, things, e);
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* "create|list|revoke". */
static void join_names(const struct action_verb *v, const char *between, struct strbuf *out)
{
    strbuf_init(out, NAMES_MAX);
    for (size_t i = 0; i < v->n_actions; i++)
        strbuf_addf(out, "%s%s", i > 0 ? between : "", v->actions[i].name);
}

static void print_help(const struct action_verb *v)
{
    AUTO(strbuf_done) struct strbuf names = {0};

    join_names(v, "|", &names);
    printf("Usage: sandglass %s %s [OPTION]...\n\n%s\n", v->name, names.buf, v->summary);
    for (size_t i = 0; i < v->n_actions; i++) {
        const struct action *a = &v->actions[i];

        printf("\nsandglass %s %s [OPTION]...%s\n%s\n", v->name, a->name, a->arguments, a->summary);
        cli_print_options(stdout, a->syntax);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static int run_action(const struct action_verb *v, size_t i, int argc, char **argv)
{
    AUTO(free_p) void *options = xcalloc(1, v->options_size);
    const struct action *a = &v->actions[i];
    struct action_options *o = options;
    struct sg_error e;
    char **rest;

    if (cli_parse(a->syntax, argc, argv, options, &rest, &e) < 0)
        return ui_usage(v->name, e.message);
    if (o->help) {
        print_help(v);
        return 0;
    }
    if (!o->which && a->syntax->positional && rest)
        o->which = rest[0];
    if (!o->which && a->syntax->positional)
        return ui_usage(v->name, a->missing);
    int r = v->run(v->arg, i, options, &e);
    if (r < 0)
        ui_error("%s", e.message);
    return r < 0;
}

static int unknown_action(const struct action_verb *v, const char *name)
{
    AUTO(strbuf_done) struct strbuf all = {0};
    const char *names[ACTIONS_MAX];
    char message[NAMES_MAX + 160];
    size_t n = 0;

    join_names(v, ", ", &all);
    for (; n < v->n_actions && n < ACTIONS_MAX; n++)
        names[n] = v->actions[n].name;
    const char *near = suggest_nearest(name, names, n);
    snprintf(message, sizeof(message), "'%.64s' is none of %s%s%s%s", name, all.buf,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return ui_usage(v->name, message);
}

static int dispatch(const struct action_verb *v, int argc, char **argv)
{
    if (argc < 2) {
        AUTO(strbuf_done) struct strbuf names = {0};
        char message[NAMES_MAX + 32];

        join_names(v, ", ", &names);
        snprintf(message, sizeof(message), "no action given: name one of %s", names.buf);
        return ui_usage(v->name, message);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(v);
        return 0;
    }
    for (size_t i = 0; i < v->n_actions; i++)
        if (strcmp(v->actions[i].name, argv[1]) == 0)
            return run_action(v, i, argc - 1, argv + 1);
    return unknown_action(v, argv[1]);
}

int actions_main(const struct action_verb *v, int argc, char **argv)
{
    int status = dispatch(v, argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        ui_error("cannot write to standard output: %s", strerror(errno));
        return status ? status : 1;
    }
    return status;
}
