#include "cli/client/carry.h"

#include "cli/client/jr.h"
#include "cli/client/show.h"
#include "cli/client/url.h"

#define NOTE_MAX    4096
#define PID_ROOM    24
#define QUOTED_MAX  40 /* bytes shown of an output that came out differently */
#define REMEDY_LEAD "What helps: "

#define REPLAY_MAX_MS 600000 /* replayed cells take as long as they took at first */

uint64_t carry_more_ms(const char *inherit, uint64_t wait_ms)
{
    return wait_ms + (inherit && strcmp(inherit, "replay") == 0 ? REPLAY_MAX_MS : 0);
}

/* ---- kernels --------------------------------------------------------------------------------- */

bool carry_is_carried(const json_t *kernel)
{
    return strcmp(jr_text(kernel, "state"), "carried") == 0;
}

const json_t *carry_find(const json_t *kernels, const char *context)
{
    return jr_find(kernels, "contextId", context);
}

static void begin_part(struct strbuf *note)
{
    strbuf_addstr(note, note->len > 0 ? "; " : "");
}

static void add_dropped(struct strbuf *note, const json_t *dropped)
{
    for (size_t i = 0; i < json_array_size(dropped); i++) {
        const json_t *one = json_array_get(dropped, i);

        if (i == 0)
            begin_part(note);
        strbuf_addf(note, "%s%llu (%s)", i == 0 ? "without descriptor " : ", ",
                    (unsigned long long)jr_count(one, "fd"), jr_text(one, "what"));
    }
}

static void add_diverged(struct strbuf *note, const json_t *diverged)
{
    for (size_t i = 0; i < json_array_size(diverged); i++) {
        const json_t *one = json_array_get(diverged, i);

        begin_part(note);
        strbuf_addf(note, "cell %llu gave '%.*s', not '%.*s'",
                    (unsigned long long)jr_count(one, "cell"), QUOTED_MAX, jr_text(one, "got"),
                    QUOTED_MAX, jr_text(one, "expected"));
    }
}

static void add_kernel(struct table *t, const json_t *kernel)
{
    const json_t *diverged = json_object_get(kernel, "diverged");
    const char *state = jr_text(kernel, "state");
    bool whole = strcmp(state, "fresh") != 0 && json_array_size(diverged) == 0;
    AUTO(strbuf_done) struct strbuf note = strbuf_upto(NOTE_MAX);

    strbuf_addstr(&note, jr_text(kernel, "reason"));
    add_dropped(&note, json_object_get(kernel, "dropped"));
    add_diverged(&note, diverged);
    table_add(t, TABLE_PLAIN, jr_text(kernel, "contextId"));
    table_add(t, TABLE_PLAIN, jr_text(kernel, "language"));
    table_add(t, whole ? TABLE_GREEN : TABLE_YELLOW, state);
    table_add(t, TABLE_PLAIN, note.buf);
}

void carry_print_kernels(const json_t *kernels)
{
    static const struct table_column columns[] = {{"CONTEXT", TABLE_TEXT},
                                                  {"LANGUAGE", TABLE_TEXT},
                                                  {"KERNEL", TABLE_TEXT},
                                                  {"", TABLE_TEXT}};
    static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_kernel, NULL};

    show_rows(&shown, kernels, stdout);
}

static void add_fork(struct table *t, const json_t *fork)
{
    const char *id = jr_text(json_object_get(fork, "sandbox"), "sandboxID");
    const json_t *kernels = json_object_get(fork, "kernels");

    if (!*id)
        return;
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        table_add(t, TABLE_PLAIN, id);
        add_kernel(t, json_array_get(kernels, i));
    }
    if (json_array_size(kernels) > 0)
        return;
    table_add(t, TABLE_PLAIN, id);
    for (size_t i = 1; i < t->n_columns; i++)
        table_add(t, TABLE_PLAIN, i + 1 < t->n_columns ? "-" : "");
}

void carry_print_forks(const json_t *forks)
{
    static const struct table_column columns[] = {{"SANDBOX", TABLE_TEXT},
                                                  {"CONTEXT", TABLE_SPARE},
                                                  {"LANGUAGE", TABLE_TEXT},
                                                  {"KERNEL", TABLE_TEXT},
                                                  {"", TABLE_TEXT}};
    static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_fork, NULL};

    show_rows(&shown, forks, stdout);
}

/* ---- what is in the way ---------------------------------------------------------------------- */

static const json_t *obstacles_of(const json_t *refusal)
{
    return json_object_get(refusal, "inTheWay");
}

/* Prints each remedy once, even if several obstacles have the same one. */
static void print_remedies(const json_t *list)
{
    AUTO(jr_free_p) json_t *seen = json_object();

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *remedy = jr_text(json_array_get(list, i), "remedy");

        if (!*remedy || json_object_get(seen, remedy))
            continue;
        json_object_set_new(seen, remedy, json_true());
        show_say(stderr, REMEDY_LEAD "%s", remedy);
    }
}

static void add_obstacle(struct table *t, const json_t *one)
{
    char pid[PID_ROOM] = "-";

    if (jr_count(one, "pid") > 0)
        snprintf(pid, sizeof(pid), "%llu", (unsigned long long)jr_count(one, "pid"));
    table_add(t, TABLE_PLAIN, pid);
    show_cell(t, jr_text(one, "command"));
    table_add(t, TABLE_PLAIN, jr_text(one, "what"));
    show_cell(t, jr_text(one, "holds"));
}

static void print_obstacles(const json_t *refusal)
{
    static const struct table_column columns[] = {{"PID", TABLE_NUMBER},
                                                  {"COMMAND", TABLE_NAME},
                                                  {"WHAT", TABLE_TEXT},
                                                  {"HOLDS", TABLE_NAME}};
    static const struct show_list shown = {columns, ARRAY_SIZE(columns), add_obstacle, NULL};
    const json_t *list = obstacles_of(refusal);

    show_rows(&shown, list, stderr);
    print_remedies(list);
}

int carry_fail(const struct sg_error *e, const json_t *refusal)
{
    int status = client_fail(e);

    print_obstacles(refusal);
    return status;
}

void carry_add_obstacle(struct strbuf *out, const json_t *refusal)
{
    const json_t *one = json_array_get(obstacles_of(refusal), 0);
    const char *command = jr_text(one, "command"), *what = jr_text(one, "what");
    const char *holds = jr_text(one, "holds"), *remedy = jr_text(one, "remedy");

    if (!*what)
        return;
    strbuf_addstr(out, " (");
    if (*command)
        strbuf_addf(out, "%s, pid %llu: ", command, (unsigned long long)jr_count(one, "pid"));
    strbuf_addf(out, "%s%s%s%s%s)", what, *holds ? " " : "", holds, *remedy ? "; " : "", remedy);
}
