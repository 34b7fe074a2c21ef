#include "cli/client/repl_command.h"

#include <fcntl.h>

#include "lib/base/fd.h"
#include "lib/command/ui.h"
#include "cli/client/jr.h"
#include "cli/client/repl_back.h"
#include "cli/client/url.h"

struct command {
    const char *name, *argument, *help; /* the help shows optional arguments in brackets */
    bool alive;                         /* the command needs a sandbox */
    int (*fn)(struct repl_session *s, const char *argument, struct sg_error *e);
};

static const struct repl_context *current(const struct repl_session *s)
{
    return &s->contexts[s->current];
}

static int check_alive(const struct repl_session *s, struct sg_error *e)
{
    if (!s->life.gone && s->n_contexts > 0)
        return 0;
    return err_set(e, SG_ERR_GONE, -ENXIO, "the sandbox has ended: ':new' makes another");
}

static int restart(struct repl_session *s, const char *argument UNUSED, struct sg_error *e)
{
    int r = repl_context_call(&s->life.sandbox, "POST", current(s)->id, "/restart", e);

    if (r < 0)
        return r;
    s->contexts[s->current].count = 0;
    free(s->contexts[s->current].fresh);
    s->contexts[s->current].fresh = NULL;
    printf("A new kernel: the variables are gone.\n");
    return 0;
}

static int renew(struct repl_session *s, const char *argument UNUSED, struct sg_error *e)
{
    int r = repl_session_renew(s, e);
    if (r == 0)
        printf("%s in sandbox %s\n", current(s)->language, s->life.id);
    return r;
}

static int language(struct repl_session *s, const char *argument, struct sg_error *e)
{
    if (!url_is_plain_name(argument))
        return err_invalid(e, "'%.64s' is not the name of a language", argument);
    int r = repl_session_language(s, argument, e);
    if (r == 0)
        repl_input_language(&s->input, current(s)->language);
    return r;
}

static int use(struct repl_session *s, const char *argument, struct sg_error *e)
{
    int r = repl_session_use(s, argument, e);

    if (r == 0)
        repl_input_language(&s->input, current(s)->language);
    return r;
}

/* Prints a field of the server's answer without characters that could drive the terminal. */
static void print_field(const json_t *object, const char *key, int width)
{
    AUTO(free_p) char *text = xstrdup(jr_text(object, key));

    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    printf("%-*s ", width, text);
}

static int contexts(struct repl_session *s, const char *argument UNUSED, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *list = NULL;
    int r = repl_context_list(&s->life.sandbox, &list, e);

    if (r < 0)
        return r;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        printf("%c ", strcmp(jr_text(one, "id"), current(s)->id) == 0 ? '*' : ' ');
        print_field(one, "id", 36);
        print_field(one, "language", 12);
        print_field(one, "cwd", 0);
        putchar('\n');
    }
    return 0;
}

static int save(struct repl_session *s, const char *argument, struct sg_error *e)
{
    AUTO(close_p) int fd = open(argument, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd < 0 && errno == EEXIST)
        return err_set(e, SG_ERR_INVALID, -EEXIST, "'%.200s' already exists", argument);
    if (fd < 0)
        return err_errno(e, "cannot create '%.200s'", argument);
    int r = fd_write_all(fd, s->cells.buf, s->cells.len);
    if (r < 0)
        return err_code(e, r, "cannot write '%.200s'", argument);
    printf("%zu bytes written to %s\n", s->cells.len, argument);
    return 0;
}

static int quit(struct repl_session *s, const char *argument UNUSED, struct sg_error *e UNUSED)
{
    s->over = true;
    return 0;
}

static int help(struct repl_session *s, const char *argument, struct sg_error *e);

static const struct command commands[] = {
    {"help", NULL, "show this list", false, help},
    {"restart", NULL, "start a new kernel, without the variables", true, restart},
    {"back", "[N]", "undo the last cell, or the last N: variables and files", true, repl_back},
    {"log", NULL, "list the cells that can be undone", true, repl_back_log},
    {"fork", NULL, "copy the sandbox as it is now, and stay in this one", true, repl_back_fork},
    {"language", "NAME", "switch to another language; the current one keeps its state", true,
     language},
    {"contexts", NULL, "list the contexts of the sandbox: its kernels", true, contexts},
    {"use", "ID", "switch to one of them", true, use},
    {"new", NULL, "switch to a new sandbox", false, renew},
    {"save", "FILE", "write the cells of this session to a file", false, save},
    {"quit", NULL, "leave, as ^D does", false, quit},
};

static int help(struct repl_session *s UNUSED, const char *argument UNUSED,
                struct sg_error *e UNUSED)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        int n = printf("  :%s%s%s", commands[i].name, commands[i].argument ? " " : "",
                       commands[i].argument ? commands[i].argument : "");

        printf("%*s%s\n", 20 - n, "", commands[i].help);
    }
    printf("A block ends with a blank line. ^C interrupts a cell, or clears the line.\n");
    return 0;
}

void repl_command(struct repl_session *s, const char *line)
{
    size_t len = strcspn(line + 1, " \t");
    const char *argument = line + 1 + len;
    struct sg_error e;

    argument += strspn(argument, " \t");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        const struct command *c = &commands[i];

        if (strlen(c->name) != len || strncmp(line + 1, c->name, len) != 0)
            continue;
        if (c->argument && c->argument[0] != '[' && !*argument)
            return ui_error(":%s needs an argument: %s", c->name, c->argument);
        if (!c->argument && *argument)
            return ui_error(":%s takes no argument", c->name);
        if ((c->alive && check_alive(s, &e) < 0) || c->fn(s, argument, &e) < 0)
            ui_error("%s", e.message);
        fflush(stdout);
        return;
    }
    ui_error("there is no command ':%.*s' (see :help)", (int)(len < 64 ? len : 64), line + 1);
}
