#include "cli/client/repl_command.h"

#include <fcntl.h>

#include "lib/base/fd.h"
#include "lib/command/ui.h"
#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/command/when.h"
#include "cli/client/jr.h"
#include "cli/client/url.h"
#include "cli/client/api.h"
#include "cli/client/carry.h"
#include "cli/client/payload.h"
#include "cli/client/table.h"

#define BACK_MAX  9999
#define LINE_MAX_ 60 /* bytes of a cell that are shown */

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

void repl_back_mark(struct repl_session *s, const char *code, size_t len)
{
    struct repl_context *context = &s->contexts[s->current];
    struct repl_step step = {.context = s->current,
                             .n_contexts = s->n_contexts,
                             .cells_len = s->cells.len,
                             .why = context->fresh ? xstrdup(context->fresh) : NULL};
    char *fresh = NULL;

    if (len > LINE_MAX_)
        len = LINE_MAX_;
    step.line = strndup(code, strcspn(code, "\n") < len ? strcspn(code, "\n") : len);
    if (!step.line)
        abort();
    for (size_t i = 0; i < s->n_contexts; i++)
        step.counts[i] = s->contexts[i].count;
    repl_trail_add(&s->trail, s->life.id, context->id, &step, &fresh);
    if (fresh)
        context->fresh = fresh;
}

/* ---- :back ----------------------------------------------------------------------------------- */

/* Sets the session's contexts back to the step. A kernel that could not be copied begins anew. */
static void restore(struct repl_session *s, const struct repl_step *step, const json_t *kernels)
{
    repl_session_keep(s, step->n_contexts, step->context);
    for (size_t i = 0; i < s->n_contexts; i++) {
        struct repl_context *context = &s->contexts[i];
        const json_t *kernel = carry_find(kernels, context->id);
        bool carried = !kernel || carry_is_carried(kernel);

        context->count = carried ? step->counts[i] : 0;
        if (!carried)
            printf("The kernel of %s starts afresh: %s cannot be brought back.\n",
                   context->language, step->counts[i] > 0 ? "its variables" : "it");
    }
    if (step->cells_len < s->cells.len) {
        s->cells.len = step->cells_len;
        s->cells.buf[s->cells.len] = '\0';
    }
    repl_input_language(&s->input, s->contexts[s->current].language);
}

static int back(struct repl_session *s, const char *argument, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *kernels = NULL;
    const struct repl_step *step;
    uint64_t n = 1;
    int r = *argument ? parse_u64(":back", argument, 1, BACK_MAX, &n, e) : 0;

    if (r == 0)
        r = repl_trail_find(&s->trail, n, &step, e);
    if (r < 0)
        return r;
    uint64_t number = step->counts[step->context] + 1;
    r = repl_trail_rewind(&s->trail, s->life.id, step, &kernels, e);
    if (r == -ENOENT || r == -ESTALE)
        return err_wrap(e, r, "before cell %llu (':log' lists the cells that can be undone)",
                        (unsigned long long)number);
    if (r < 0)
        return r;
    printf("Before cell %llu: variables and files are as they were.\n", (unsigned long long)number);
    restore(s, step, kernels);
    repl_trail_cut(&s->trail, n);
    return 0;
}

/* ---- :log ------------------------------------------------------------------------------------ */

static void add_step(struct table *t, const struct repl_session *s, size_t i, const json_t *found)
{
    const struct repl_step *step = &s->trail.steps[i];
    char back[32] = "-", number[32], made[64] = "-", size[32] = "-";
    int64_t then;

    if (found) {
        snprintf(back, sizeof(back), ":back %zu", s->trail.n - i);
        format_size(jr_count(found, "memoryBytes"), size, sizeof(size));
        if (when_parse_ms(jr_text(found, "createdAt"), &then) == 0)
            when_relative(then, clock_wall_ms(), made, sizeof(made));
    }
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(step->counts[step->context] + 1));
    table_add(t, TABLE_PLAIN, back);
    table_add(t, TABLE_PLAIN, number);
    table_add(t, TABLE_PLAIN, s->contexts[step->context].language);
    table_add(t, TABLE_PLAIN, made);
    table_add(t, TABLE_PLAIN, size);
    table_add(t, TABLE_PLAIN, step->line);
}

static int back_log(struct repl_session *s, const char *argument UNUSED, struct sg_error *e)
{
    static const struct table_column columns[] = {{"", TABLE_TEXT},          {"CELL", TABLE_NUMBER},
                                                  {"LANGUAGE", TABLE_SPARE}, {"MADE", TABLE_SPARE},
                                                  {"MEMORY", TABLE_NUMBER},  {"CODE", TABLE_TEXT}};
    AUTO(jr_free_p) json_t *list = NULL;
    AUTO(table_done) struct table t = {0};
    const struct repl_step *last;
    bool any = false;

    for (size_t i = 0; i < s->trail.n; i++)
        any |= s->trail.steps[i].checkpoint != NULL;
    int r = any ? repl_trail_list(&s->trail, s->life.id, &list, e)
                : repl_trail_find(&s->trail, 1, &last, e);
    if (r < 0)
        return r;
    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < s->trail.n; i++) {
        const char *id = s->trail.steps[i].checkpoint;

        add_step(&t, s, i, id ? jr_find(list, "checkpointId", id) : NULL);
    }
    table_print(&t, stdout);
    return 0;
}

/* ---- :fork ----------------------------------------------------------------------------------- */

static int back_fork(struct repl_session *s, const char *argument UNUSED, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *answer = NULL, *refusal = NULL;
    AUTO(strbuf_done) struct strbuf body = {0}, why = {0};
    const struct repl_context *context = &s->contexts[s->current];

    payload_timeout(&body, repl_life_timeout_s(&s->life));
    struct api_request q = {.method = "POST", .body = &body, .refusal = &refusal};
    int r = api_ask(s->life.client, &q, &answer, e, "/sandboxes/%s/fork", s->life.id);
    if (r < 0) {
        strbuf_init(&why, sizeof(e->message));
        carry_add_obstacle(&why, refusal);
        return err_set(e, e->kind, r, "%.320s%.160s", e->message, why.len > 0 ? why.buf : "");
    }
    const json_t *fork = json_array_get(answer, 0), *kernels = json_object_get(fork, "kernels");
    const char *id = jr_text(json_object_get(fork, "sandbox"), "sandboxID");
    if (!url_is_plain_name(id))
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer has no id of a sandbox");
    /* A server that copies only files says nothing about kernels. */
    const json_t *kernel = carry_find(kernels, context->id);
    printf("Sandbox %s is a copy of this one%s. To enter it:\n", id,
           kernels ? "" : ", without its variables");
    if (kernels)
        printf("  sandglass repl --context %s %s\n", context->id, id);
    else
        printf("  sandglass repl %s\n", id);
    if (kernel && !carry_is_carried(kernel))
        carry_print_kernels(kernels);
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static int help(struct repl_session *s, const char *argument, struct sg_error *e);

static const struct command commands[] = {
    {"help", NULL, "show this list", false, help},
    {"restart", NULL, "start a new kernel, without the variables", true, restart},
    {"back", "[N]", "undo the last cell, or the last N: variables and files", true, back},
    {"log", NULL, "list the cells that can be undone", true, back_log},
    {"fork", NULL, "copy the sandbox as it is now, and stay in this one", true, back_fork},
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
