/* docs/observability.md against the code: its tables have every span, attribute, metric, field of
 * the log and kind of event that there is, and none that is not. */
#include "tap.h"

#include <fcntl.h>
#include <jansson.h>

#include "lib/base/fd.h"
#include "front/core/events.h"
#include "lib/log/log_form.h"
#include "front/telemetry/figures.h"
#include "front/telemetry/trace.h"

TAP_MAIN

#define NAMES_MAX 128
#define NAME_MAX_ 128

struct table {
    char names[NAMES_MAX][NAME_MAX_]; /* what stands in the first column, without its quotes */
    char rows[NAMES_MAX][512];
    size_t n;
};

static char *load_page(void)
{
    AUTO(free_p) char *path = NULL;
    char *text = NULL;

    EXPECT(asprintf(&path, "%s/docs/observability.md", SG_SOURCE_DIR) > 0);
    EXPECT(file_read(AT_FDCWD, path, 1u << 20, &text, NULL) == 0);
    return text ? text : xstrdup("");
}

/* The table whose head begins with that column. */
static void read_table(const char *column, struct table *ret)
{
    AUTO(free_p) char *page = load_page();
    char head[64], *rest, *line;

    *ret = (struct table){0};
    snprintf(head, sizeof(head), "\n| %s |", column);
    rest = strstr(page, head);
    EXPECT(rest != NULL);
    if (!rest)
        return;
    rest++;
    strsep(&rest, "\n"); /* head */
    strsep(&rest, "\n"); /* line below it */
    while ((line = strsep(&rest, "\n")) && strncmp(line, "| `", 3) == 0 && ret->n < NAMES_MAX) {
        size_t len = strcspn(line + 3, "`");

        EXPECT(len < NAME_MAX_);
        snprintf(ret->names[ret->n], NAME_MAX_, "%.*s", (int)len, line + 3);
        snprintf(ret->rows[ret->n++], sizeof(ret->rows[0]), "%s", line);
    }
}

static const char *row_of(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->names[i], name) == 0)
            return t->rows[i];
    printf("# the page does not have '%s'\n", name);
    return NULL;
}

TEST(every_span)
{
    struct table t;

    read_table("span", &t);
    for (enum span_name k = 0; k < SPAN_NAME_MAX_; k++)
        EXPECT(row_of(&t, span_name_text(k)) != NULL);
    EXPECT(t.n == SPAN_NAME_MAX_);
}

TEST(every_attribute)
{
    struct table t;

    read_table("attribute", &t);
    for (enum span_key k = 0; k < KEY_MAX_; k++)
        EXPECT(row_of(&t, span_key_text(k)) != NULL);
    EXPECT(t.n == KEY_MAX_);
}

#define FIGURE_ROW(id, type, name, label, help) {FIGURES_PREFIX name, #type, label},
TEST(every_metric_with_its_type_and_label)
{
    static const struct {
        const char *name, *type, *label;
    } figures[] = {FIGURES(FIGURE_ROW)};
    struct table t;

    read_table("metric", &t);
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        const char *row = row_of(&t, figures[i].name);
        char type[32], label[64];

        EXPECT(row != NULL);
        snprintf(type, sizeof(type), "| %s |", figures[i].type);
        EXPECT(row && strcasestr(row, type) != NULL);
        if (!figures[i].label)
            continue;
        snprintf(label, sizeof(label), "`%.*s`", (int)strcspn(figures[i].label, ":"),
                 figures[i].label);
        EXPECT(row && strstr(row, label) != NULL);
    }
    EXPECT(t.n == ARRAY_SIZE(figures));
}

TEST(every_field_of_the_log)
{
    struct log_record record = {.level = LEVEL_INFO, .message = "text"};
    struct log_about about = {.fault = FAULT_CLIENT,
                              .sandbox_id = "s",
                              .tenant = "t",
                              .request = "r",
                              .trace = "u",
                              .method = "GET",
                              .path = "/p",
                              .peer = "127.0.0.1",
                              .status = 404,
                              .ns = 1000000};
    AUTO(strbuf_done) struct strbuf line = {0};
    const char *key;
    json_t *value;
    struct table t;

    strbuf_init(&line, LOG_LINE_MAX);
    record.about = about;
    log_form_json(&record, &line);
    json_t *fields = json_loadb(line.buf, line.len, 0, NULL);
    EXPECT(fields != NULL);
    read_table("field", &t);
    json_object_foreach(fields, key, value) EXPECT(row_of(&t, key) != NULL);
    EXPECT(t.n == json_object_size(fields));
    json_decref(fields);
}

TEST(every_kind_of_event)
{
    struct table t;

    read_table("event", &t);
    for (enum event_kind k = 0; k < EVENT_KIND_MAX_; k++)
        EXPECT(row_of(&t, event_kind_text(k)) != NULL);
    EXPECT(t.n == EVENT_KIND_MAX_);
}
