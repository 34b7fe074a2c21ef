#include <jansson.h>

#include "lib/json/values.h"
#include "lib/audit/audit.h"
#include "lib/text/parse.h"
#include "guard/audit_cmd.h"

#define CELL_MAX 512
#define RED      "\033[31m"
#define GREEN    "\033[32m"
#define YELLOW   "\033[33m"
#define PLAIN    "\033[0m"

/* Widths of the columns; the texts of the last two may be longer. */
enum { TIME = 23, KIND = 8, VERDICT = 7, SANDBOX = ID_LEN, BYTES = 9, COUNT = 5, WHERE = 40 };

void audit_show_title(enum audit_form form)
{
    if (form != AUDIT_JSON)
        printf("%-*s  %-*s  %-*s  %-*s  %*s  %*s  %*s  %-*s  %s\n", TIME, "TIME (UTC)", KIND,
               "KIND", VERDICT, "VERDICT", SANDBOX, "SANDBOX", BYTES, "SENT", BYTES, "RECEIVED",
               COUNT, "COUNT", WHERE, "WHERE", "WHY");
}

static void clean(char *s)
{
    for (; *s; s++)
        if (*s < 0x20 || *s >= 0x7f)
            *s = '?';
}

/* Fills buf with the text of a field, or "-", and returns it. */
static const char *cell(const json_t *o, const char *key, char buf[CELL_MAX])
{
    const char *text = jr_text(o, key);

    snprintf(buf, CELL_MAX, "%s", text[0] ? text : "-");
    clean(buf);
    return buf;
}

static const char *bytes(const json_t *o, const char *key, char buf[CELL_MAX])
{
    json_int_t n = jr_int(o, key);

    if (n <= 0)
        snprintf(buf, CELL_MAX, "-");
    else
        format_size((uint64_t)n, buf, CELL_MAX);
    return buf;
}

/* "a.test (93.184.216.34):443", or as much of it as is known. */
static const char *where(const json_t *o, char buf[CELL_MAX])
{
    const char *name = jr_text_or(o, "name", NULL);
    const char *address = jr_text_or(o, "address", NULL);
    json_int_t port = jr_int(o, "port");
    char tail[32] = "";

    if (port > 0)
        snprintf(tail, sizeof(tail), ":%" JSON_INTEGER_FORMAT, port);
    if (name && address)
        snprintf(buf, CELL_MAX, "%s (%s)%s", name, address, tail);
    else if (address && strchr(address, ':'))
        snprintf(buf, CELL_MAX, "[%s]%s", address, tail);
    else
        snprintf(buf, CELL_MAX, "%s%s", name ? name : address ? address : "-", tail);
    clean(buf);
    return buf;
}

/* The rule, and the detail if there is one. */
static const char *why(const json_t *o, char buf[CELL_MAX])
{
    const char *rule = jr_text_or(o, "rule", NULL);
    const char *detail = jr_text_or(o, "detail", NULL);

    if (rule && detail)
        snprintf(buf, CELL_MAX, "%s: %s", rule, detail);
    else
        snprintf(buf, CELL_MAX, "%s", rule ? rule : detail ? detail : "-");
    clean(buf);
    return buf;
}

static const char *colour_of(const char *verdict)
{
    return strcmp(verdict, "allow") == 0    ? GREEN
           : strcmp(verdict, "report") == 0 ? YELLOW
           : strcmp(verdict, "deny") == 0   ? RED
                                            : "";
}

static void show_row(const json_t *o, bool colours)
{
    char a[CELL_MAX], b[CELL_MAX], verdict[CELL_MAX];
    json_int_t count = jr_int(o, "count");

    /* Shows "2026-11-15T10:00:00.123Z" without its letters. */
    cell(o, "time", a);
    if (strlen(a) == TIME + 1)
        a[10] = ' ';
    printf("%-*.*s  %-*s  ", TIME, TIME, a, KIND, cell(o, "kind", b));
    cell(o, "verdict", verdict);
    printf("%s%-*s%s  ", colours ? colour_of(verdict) : "", VERDICT, verdict,
           colours && colour_of(verdict)[0] ? PLAIN : "");
    printf("%-*s  ", SANDBOX, cell(o, "sandbox", a));
    printf("%*s  %*s  ", BYTES, bytes(o, "up", a), BYTES, bytes(o, "down", b));
    printf("%*" JSON_INTEGER_FORMAT "  %-*s  %s\n", COUNT, count, WHERE, where(o, a), why(o, b));
}

void audit_show(const char *line, size_t len, enum audit_form form)
{
    json_t *o;

    if (form == AUDIT_JSON) {
        for (size_t i = 0; i < len; i++)
            putchar(line[i] >= 0x20 && line[i] < 0x7f ? line[i] : '?');
        putchar('\n');
        return;
    }
    o = json_loadb(line, len, 0, NULL);
    if (json_is_object(o))
        show_row(o, form == AUDIT_COLOURS);
    json_decref(o);
}
