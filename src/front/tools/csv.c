/* Reads a table row by row. The first row names the columns, and every other row must have as many
 * fields. A field in quotes may contain commas, line ends, and quotes written twice; a field
 * without quotes contains none of them. An error names its row, counted from 1. */
#include <string.h>

#include "front/tools/parsed.h"

#define COLUMNS_MAX 1024
#define FIELD_MAX   TOOL_OUTPUT_MAX

struct csv {
    const char *at, *end;
    size_t row;
    struct strbuf field; /* the field that was read last */
    bool last;           /* it was the last field of its row */
};

/* The end of the text counts as an end of line. */
static bool take_line_end(struct csv *c)
{
    if (c->at == c->end)
        return true;
    if (*c->at == '\n') {
        c->at++;
        return true;
    }
    if (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n') {
        c->at += 2;
        return true;
    }
    return false;
}

static int quoted(struct csv *c, struct sg_error *e)
{
    for (c->at++;; c->at++) {
        const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));

        if (!quote)
            return err_invalid(e, "row %zu: a field in quotes has no end", c->row);
        strbuf_add(&c->field, c->at, (size_t)(quote - c->at));
        c->at = quote + 1;
        if (c->at == c->end || *c->at != '"')
            return 0;
        strbuf_addch(&c->field, '"');
    }
}

static int plain(struct csv *c, struct sg_error *e)
{
    const char *from = c->at;

    while (c->at < c->end && *c->at != ',' && *c->at != '\n' &&
           !(*c->at == '\r' && (c->at + 1 == c->end || c->at[1] == '\n'))) {
        if (*c->at == '"')
            return err_invalid(e, "row %zu: a quote in a field that does not begin with one",
                               c->row);
        c->at++;
    }
    strbuf_add(&c->field, from, (size_t)(c->at - from));
    return 0;
}

static int next_field(struct csv *c, struct sg_error *e)
{
    strbuf_reset(&c->field);
    int r = c->at < c->end && *c->at == '"' ? quoted(c, e) : plain(c, e);
    if (r < 0)
        return r;
    if (c->at < c->end && *c->at == ',') {
        c->at++;
        c->last = false;
        return 0;
    }
    if (c->at + 1 == c->end && *c->at == '\r')
        c->at++; /* a CR at the end of text that was cut between CR and LF */
    c->last = take_line_end(c);
    return c->last
               ? 0
               : err_invalid(e, "row %zu: something follows the end of a field in quotes", c->row);
}

/* Goes on to the next row. False: there is none. */
static bool next_row(struct csv *c)
{
    while (c->at < c->end && take_line_end(c))
        ;
    c->row++;
    return c->at < c->end;
}

/* ---- rows to objects ------------------------------------------------------------------------- */

struct header {
    char *names[COLUMNS_MAX];
    size_t n;
};

static void header_done(struct header *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->names[i]);
    free(h);
}

static int read_header(struct csv *c, struct header *h, struct sg_error *e)
{
    do {
        int r = next_field(c, e);
        if (r < 0)
            return r;
        if (h->n == COLUMNS_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "more than %d columns", COLUMNS_MAX);
        for (size_t i = 0; i < h->n; i++)
            if (strcmp(h->names[i], c->field.buf) == 0)
                return err_invalid(e, "two columns are called '%.64s'", c->field.buf);
        h->names[h->n++] = xstrdup(c->field.buf);
    } while (!c->last);
    return 0;
}

static int write_row(struct csv *c, const struct header *h, struct json *j, struct sg_error *e)
{
    size_t i = 0;

    jw_object_begin(j);
    do {
        int r = next_field(c, e);
        if (r < 0)
            return r;
        if (i < h->n)
            jw_bytes(jw_key(j, h->names[i]), c->field.buf, c->field.len);
        i++;
    } while (!c->last);
    jw_object_end(j);
    return i == h->n ? 0
                     : err_invalid(e, "row %zu has %zu fields, and the first row has %zu", c->row,
                                   i, h->n);
}

static int write_table(struct csv *c, struct header *h, struct strbuf *ret, struct sg_error *e)
{
    struct json j = {.out = ret};

    if (!next_row(c))
        return err_set(e, SG_ERR_INVALID, -ENODATA, "there is no row with the names of columns");
    int r = read_header(c, h, e);
    if (r < 0)
        return r;
    jw_array_begin(&j);
    while (next_row(c)) {
        r = write_row(c, h, &j, e);
        if (r < 0)
            return r;
        if (ret->truncated)
            return err_set(e, SG_ERR_LIMIT, -E2BIG, "the table as JSON has more than %zu bytes",
                           ret->max);
    }
    jw_array_end(&j);
    return 0;
}

int csv_to_json(const char *text, size_t len, struct strbuf *ret, struct sg_error *e)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the mark that says: this is UTF-8 */
    struct csv c = {.at = text, .end = text + len};
    struct header *h = xcalloc(1, sizeof(*h));

    if (len >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0)
        c.at += sizeof(mark) - 1;
    strbuf_init(&c.field, FIELD_MAX);
    int r = write_table(&c, h, ret, e);
    strbuf_done(&c.field);
    header_done(h);
    return r;
}
