/* sandglass top: shows what sandboxes use, again and again. */
#include <poll.h>

#include "lib/base/clock.h"
#include "lib/text/parse.h"
#include "lib/command/terminal.h"
#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/jr.h"
#include "cli/client/sandboxes.h"
#include "cli/client/table.h"
#include "cli/client/url.h"
#include "lib/command/when.h"

#define EVERY_MS     2000
#define RECENT_S     60 /* older figures say nothing about the present */
#define OWN_SCREEN   "\033[?1049h\033[?25l"
#define LEAVE_SCREEN "\033[?25h\033[?1049l"
#define HOME         "\033[H"
#define CLEAR_REST   "\033[J"

struct top_options {
    struct client_common common;
    struct sandboxes_ids ids;
    bool once, json;
};

static int positional(void *self, const char *arg, struct sg_error *e)
{
    struct top_options *o = self;

    return sandboxes_add_id(&o->ids, arg, e);
}

static const struct cli_option options[] = {
    {"once", 0, NULL, "show the table once", CLI_FLAG(top_options, once)},
    {"json", 0, NULL, "print the server's figures as one array, once", CLI_FLAG(top_options, json)},
    CLIENT_OPTIONS,
};

/* ---- figures --------------------------------------------------------------------------------- */

/* Lists the sandboxes to show: the ones that the user named, or all. */
static int list(struct client *c, const struct top_options *o, json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *all = NULL;
    struct sandboxes_filter none = {0};

    if (o->ids.n == 0)
        return sandboxes_list(c, &none, ret, e);
    all = json_array();
    for (size_t i = 0; i < o->ids.n; i++) {
        json_t *one = NULL;
        int r = api_get(c, &one, e, "/sandboxes/%s", o->ids.v[i]);

        if (r < 0)
            return r;
        json_array_append_new(all, one);
    }
    *ret = steal_ptr(&all);
    return 0;
}

/* Gets the newest figures of a sandbox. *ret stays NULL if there are none, for example because the
 * sandbox has just ended. */
static int newest_metric(struct client *c, const char *id, json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *metrics = NULL;

    if (!url_is_plain_name(id))
        return 0;
    int r = api_get(c, &metrics, e, "/sandboxes/%s/metrics?start=%lld", id,
                    (long long)(clock_wall_ms() / 1000 - RECENT_S));
    if (r == -ENOENT)
        return 0;
    size_t n = r == 0 ? json_array_size(metrics) : 0;
    if (n > 0)
        *ret = json_incref(json_array_get(metrics, n - 1));
    return r;
}

/* Adds "metric" to each object of the list. */
static int add_metrics(struct client *c, json_t *sandboxes, struct sg_error *e)
{
    for (size_t i = 0; i < json_array_size(sandboxes); i++) {
        json_t *sandbox = json_array_get(sandboxes, i), *metric = NULL;

        /* The last figures of a paused sandbox say nothing about the present. */
        if (strcmp(jr_text(sandbox, "state"), "running") != 0)
            continue;
        int r = newest_metric(c, jr_text(sandbox, "sandboxID"), &metric, e);
        if (r < 0)
            return r;
        if (metric)
            json_object_set_new(sandbox, "metric", metric);
    }
    return 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void add_amounts(struct table *t, const json_t *metric, const char *used, const char *total)
{
    char text[80], a[32], b[32];

    snprintf(text, sizeof(text), "%s / %s", format_size(jr_count(metric, used), a, sizeof(a)),
             format_size(jr_count(metric, total), b, sizeof(b)));
    table_add(t, TABLE_PLAIN, metric ? text : "-");
}

static void add_row(struct table *t, const json_t *sandbox)
{
    const char *state = jr_text(sandbox, "state"), *alias = jr_text(sandbox, "alias");
    const json_t *metric = json_object_get(sandbox, "metric");
    char cpu[32];

    snprintf(cpu, sizeof(cpu), "%.1f", jr_number(metric, "cpuUsedPct"));
    table_add(t, TABLE_PLAIN, jr_text(sandbox, "sandboxID"));
    table_add(t, TABLE_PLAIN, *alias ? alias : jr_text(sandbox, "templateID"));
    table_add(t, strcmp(state, "running") == 0 ? TABLE_GREEN : TABLE_YELLOW, state);
    table_add(t, TABLE_PLAIN, metric ? cpu : "-");
    add_amounts(t, metric, "memUsed", "memTotal");
    add_amounts(t, metric, "diskUsed", "diskTotal");
}

static void format(const json_t *sandboxes, struct strbuf *out)
{
    static const struct table_column columns[] = {
        {"ID", TABLE_TEXT},      {"TEMPLATE", TABLE_TEXT}, {"STATE", TABLE_TEXT},
        {"CPU %", TABLE_NUMBER}, {"MEMORY", TABLE_NUMBER}, {"DISK", TABLE_NUMBER},
    };
    AUTO(table_done) struct table t = {0};

    uint16_t rows, cols = 0;

    table_init(&t, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < json_array_size(sandboxes); i++)
        add_row(&t, json_array_get(sandboxes, i));
    if (isatty(STDOUT_FILENO))
        terminal_size(&rows, &cols);
    table_format(&t, out, cols, ui_has_colour(STDOUT_FILENO));
}

/* Draws over the last screen line by line, so that nothing flickers. Lines that do not fit are left
 * out. */
static void draw(const char *text)
{
    uint16_t rows, cols;

    terminal_size(&rows, &cols);
    fputs(HOME, stdout);
    for (unsigned row = 0; *text && row + 1u < rows; row++) {
        size_t len = strcspn(text, "\n");

        printf("%.*s\033[K\n", (int)len, text);
        text += len + (text[len] == '\n');
    }
    printf(CLEAR_REST "q: quit");
    fflush(stdout);
}

static int show_once(struct client *c, const struct top_options *o, bool screen, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *sandboxes = NULL;
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(SIZE_MAX / 2);
    int r = list(c, o, &sandboxes, e);

    if (r == 0)
        r = add_metrics(c, sandboxes, e);
    if (r < 0)
        return r;
    if (o->json)
        return jr_print(sandboxes, e);
    format(sandboxes, &out);
    if (screen)
        draw(out.buf);
    else
        fputs(out.buf, stdout);
    return 0;
}

/* ---- on a terminal --------------------------------------------------------------------------- */

/* Makes keys arrive one by one and unseen; ^C still sends a signal. */
static void take_keys(struct terminal *t)
{
    struct termios keys;

    terminal_raw(t, STDIN_FILENO);
    if (t->fd < 0)
        return;
    keys = t->saved;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(t->fd, TCSADRAIN, &keys);
}

/* Waits for the next turn. False if the user wants to leave. */
static bool wait_turn(const struct terminal *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    char key = 0;

    int n = poll(&p, 1, EVERY_MS);
    if (interrupt_signal())
        return false;
    if (n > 0 && read(t->fd, &key, 1) <= 0)
        return false;
    return key != 'q' && key != 'Q';
}

static int show_live(struct client *c, const struct top_options *o, struct sg_error *e)
{
    AUTO(terminal_restore) struct terminal terminal = {.fd = -1};
    int r;

    interrupt_watch();
    take_keys(&terminal);
    fputs(OWN_SCREEN, stdout);
    do
        r = show_once(c, o, true, e);
    while (r == 0 && wait_turn(&terminal));
    fputs(LEAVE_SCREEN, stdout);
    fflush(stdout);
    return r == -EINTR ? 0 : r; /* ^C is one way to quit, and no error */
}

static int top_fn(struct client *c, void *self, struct sg_error *e)
{
    const struct top_options *o = self;
    bool live = !o->once && !o->json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);

    return live ? show_live(c, o, e) : show_once(c, o, false, e);
}

const struct client_verb top_verb = {
    .name = "top",
    .usage = "[OPTION]... [ID]...",
    .about = "Shows what sandboxes use: processors, memory, disk. On a terminal the table is "
             "updated\nevery 2 seconds, until q is pressed.",
    .syntax = &(const struct cli_syntax){options, ARRAY_SIZE(options), positional, 0},
    .options_size = sizeof(struct top_options),
    .fn = top_fn,
};
