#include "front/main/manage.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/sanitise/sanitise.h"

#define ACTIONS_MAX 8

int manage_sanitise(const char *value, uint8_t *ret, struct sg_error *e)
{
    enum sanitise_mode mode;

    if (sanitise_mode_parse(value, &mode) < 0)
        return err_invalid(e, "--sanitise '%.40s': use enforce, report-only or off", value);
    *ret = (uint8_t)(mode + 1);
    return 0;
}

const char *manage_sanitise_name(uint8_t stored)
{
    return stored ? sanitise_mode_name((enum sanitise_mode)(stored - 1)) : NULL;
}

void manage_print_cell(const char *text, int width)
{
    char clean[STORE_NAME_MAX + 1];
    size_t n = 0;

    for (; text[n] && n < STORE_NAME_MAX; n++)
        clean[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
    clean[n] = '\0';
    printf("%-*s  ", width, clean[0] ? clean : "-");
}

/* A server that has been used has a database. If it is gone, an empty one made here would hide that
 * (warden/state.h). */
static int check_there(const char *dir, struct sg_error *e)
{
    struct stat st;

    if ((stat("server.db", &st) == 0 && st.st_size > 0) || access("../used", F_OK) < 0)
        return 0;
    return err_set(e, SG_ERR_NOT_FOUND, -ENODATA,
                   "the database '%s/server.db' is missing: restore a backup with 'sandglass "
                   "restore', or start afresh with 'sandglass serve --new'",
                   dir);
}

int manage_enter(const struct action_options *o, char ret_dir[ACTION_DIR_MAX], struct sg_error *e)
{
    int r = action_enter(o, "front", "keys and tenants", ret_dir, e);

    return r < 0 ? r : check_there(ret_dir, e);
}

static int run(const void *arg, size_t i, const void *options, struct sg_error *e)
{
    const struct manage_verb *v = arg;
    struct store *s = NULL;
    char dir[ACTION_DIR_MAX];
    int r = manage_enter(options, dir, e);

    if (r < 0)
        return r;
    r = store_open(".", &s, e);
    if (r < 0)
        return err_wrap(e, r, "in '%s'", dir);
    r = v->actions[i].run(s, options, e);
    store_close(s);
    return r;
}

int manage_main(const struct manage_verb *v, int argc, char **argv)
{
    struct action actions[ACTIONS_MAX];
    const struct action_verb verb = {.name = v->name,
                                     .summary = v->summary,
                                     .actions = actions,
                                     .n_actions = v->n_actions,
                                     .options_size = v->options_size,
                                     .run = run,
                                     .arg = v};

    assert(v->n_actions <= ACTIONS_MAX);
    for (size_t i = 0; i < v->n_actions; i++)
        actions[i] = v->actions[i].action;
    return actions_main(&verb, argc, argv);
}
