#include "lib/http/multipart.h"

#include <strings.h>

#include "lib/text/parse.h"
#include "lib/text/strbuf.h"

#define BOUNDARY_MAX 70
#define PADDING_MAX  64

/*   PREAMBLE --delimiter--> AFTER --CR LF--> HEADERS --empty line--> DATA --delimiter--> AFTER
 *                             `-- "--" --> END
 * The delimiter is CR LF "--" boundary. Its only CR is the first byte. So bytes that looked like
 * its beginning, and were not, hide no other beginning; and as they are known, they need not be
 * kept. */
enum state { PREAMBLE, AFTER, AFTER_LF, AFTER_DASH, HEADERS, DATA, END };

struct multipart {
    struct multipart_handlers handlers;
    void *arg;
    enum state state;
    unsigned parts;
    unsigned padding;
    int error;
    char delimiter[4 + BOUNDARY_MAX + 1];
    size_t delimiter_len;
    size_t matched; /* bytes of the delimiter seen */
    struct strbuf headers;
};

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t");
}

/* Reads a quoted string or a token at p. Returns what follows, or NULL. In a quoted string a
 * backslash escapes only a quote or a backslash, because some clients write Windows paths
 * unescaped. */
static const char *read_value(const char *p, struct strbuf *ret)
{
    strbuf_reset(ret);
    if (*p != '"') {
        size_t len = strcspn(p, "; \t");
        strbuf_add(ret, p, len);
        return p + len;
    }
    for (p++; *p != '"'; p++) {
        if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
            p++;
        if (*p == '\0')
            return NULL;
        strbuf_addch(ret, *p);
    }
    return p + 1;
}

/* Finds the first parameter called `name` after the first ';' of text. */
static bool find_parameter(const char *text, const char *name, struct strbuf *ret)
{
    const char *p = text + strcspn(text, ";");

    while (p && *p == ';') {
        p = skip_space(p + 1);
        size_t len = strcspn(p, "=; \t");
        bool ours = len == strlen(name) && strncasecmp(p, name, len) == 0;

        p = skip_space(p + len);
        if (*p != '=')
            continue;
        p = read_value(skip_space(p + 1), ret);
        if (ours)
            return p != NULL;
        if (p)
            p = skip_space(p);
    }
    return false;
}

static bool boundary_valid(const struct strbuf *b)
{
    static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "'()+_,-./:=? ";

    return b->len > 0 && !b->truncated && b->buf[b->len - 1] != ' ' &&
           b->buf[strspn(b->buf, set)] == '\0';
}

int multipart_new(const char *content_type, const struct multipart_handlers *h, void *arg,
                  struct multipart **ret, struct sg_error *e)
{
    static const char type[] = "multipart/form-data";
    AUTO(strbuf_done) struct strbuf boundary = strbuf_upto(BOUNDARY_MAX);
    size_t len = sizeof(type) - 1;

    if (strcspn(content_type, "; \t") != len || strncasecmp(content_type, type, len) != 0)
        return err_invalid(e, "Content-Type is not multipart/form-data");
    if (!find_parameter(content_type, "boundary", &boundary) || !boundary_valid(&boundary))
        return err_invalid(e, "Content-Type multipart/form-data has no usable boundary");
    /* As if CR LF had come: the first delimiter needs no line before it. */
    struct multipart *m = NEW(struct multipart, .handlers = *h, .arg = arg, .matched = 2);
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.buf, boundary.len);
    m->delimiter_len = 4 + boundary.len;
    strbuf_init(&m->headers, MULTIPART_HEADERS_MAX);
    *ret = m;
    return 0;
}

void multipart_free(struct multipart *m)
{
    if (!m)
        return;
    strbuf_done(&m->headers);
    free(m);
}

/* ---- headers of a part ----------------------------------------------------------------------- */

static int bad(struct sg_error *e, const char *what)
{
    return err_invalid(e, "malformed multipart body: %s", what);
}

/* Percent-decodes in place: everything, or only the three characters that browsers escape in a
 * quoted name. False: the text holds a NUL. */
static bool unescape(struct strbuf *s, bool all)
{
    size_t out = 0;

    if (s->len == 0)
        return true;
    for (size_t i = 0; i < s->len; out++) {
        const char *p = s->buf + i;
        int v = p[0] == '%' && parse_hex(p[1]) >= 0 && parse_hex(p[2]) >= 0
                    ? parse_hex(p[1]) << 4 | parse_hex(p[2])
                    : -1;
        bool decode = v >= 0 && (all || v == '"' || v == '\r' || v == '\n');

        if (decode && v == 0)
            return false;
        s->buf[out] = decode ? (char)v : *p;
        i += decode ? 3 : 1;
    }
    s->buf[out] = '\0';
    s->len = out;
    return true;
}

/* Finds the extended form: filename*=UTF-8''%e2%82%ac */
static bool find_extended(const char *value, struct strbuf *ret)
{
    if (!find_parameter(value, "filename*", ret) || strncasecmp(ret->buf, "utf-8'", 6) != 0)
        return false;
    const char *text = strchr(ret->buf + 6, '\'');
    if (!text)
        return false;
    strbuf_consume(ret, (size_t)(text + 1 - ret->buf));
    return unescape(ret, true);
}

static int tell_part(struct multipart *m, const char *disposition, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf name = strbuf_upto(MULTIPART_HEADERS_MAX);
    AUTO(strbuf_done) struct strbuf filename = strbuf_upto(MULTIPART_HEADERS_MAX);

    if (!find_parameter(disposition, "name", &name))
        strbuf_reset(&name);
    if (!find_extended(disposition, &filename)) {
        if (!find_parameter(disposition, "filename", &filename))
            strbuf_reset(&filename);
        unescape(&filename, false);
    }
    unescape(&name, false);
    return m->handlers.on_part(m->arg, name.buf, filename.buf, e);
}

/* The block of headers is whole, with the empty line. */
static int begin_part(struct multipart *m, struct sg_error *e)
{
    static const char wanted[] = "content-disposition:";
    const char *disposition = "";

    for (char *line = m->headers.buf, *end; *line != '\r'; line = end + 2) {
        end = strstr(line, "\r\n");
        *end = '\0';
        if (*line == ' ' || *line == '\t' || !strchr(line, ':'))
            return bad(e, "a part's header is not 'Name: value'");
        if (strncasecmp(line, wanted, sizeof(wanted) - 1) == 0)
            disposition = line + sizeof(wanted) - 1;
    }
    if (++m->parts > MULTIPART_PARTS_MAX)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "the multipart body has more than %d parts",
                       MULTIPART_PARTS_MAX);
    int r = tell_part(m, disposition, e);
    strbuf_done(&m->headers);
    m->state = DATA;
    m->matched = 0;
    return r;
}

static int header_byte(struct multipart *m, char c, struct sg_error *e)
{
    struct strbuf *h = &m->headers;
    bool after_cr = h->len > 0 && h->buf[h->len - 1] == '\r';

    if (after_cr != (c == '\n') || (unsigned char)c == 0x7f ||
        ((unsigned char)c < 0x20 && c != '\r' && c != '\n' && c != '\t'))
        return bad(e, "a control character, or a line without CR LF, is in a part's headers");
    strbuf_addch(h, c);
    if (h->truncated)
        return bad(e, "a part's headers are too long");
    bool whole = (h->len == 2 && c == '\n') ||
                 (h->len >= 4 && memcmp(h->buf + h->len - 4, "\r\n\r\n", 4) == 0);
    return whole ? begin_part(m, e) : 0;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int emit(struct multipart *m, const char *p, size_t n, struct sg_error *e)
{
    return n > 0 && m->state == DATA ? m->handlers.on_data(m->arg, p, n, e) : 0;
}

static int end_delimiter(struct multipart *m, struct sg_error *e)
{
    int r = m->state == DATA ? m->handlers.on_part_end(m->arg, e) : 0;

    m->state = AFTER;
    m->padding = 0;
    return r;
}

/* How many bytes at p are surely no part of a delimiter. */
static size_t plain_bytes(const struct multipart *m, const char *p, size_t n)
{
    const char *end = p + n;

    for (const char *cr = p; (cr = memchr(cr, '\r', (size_t)(end - cr))); cr++) {
        size_t left = (size_t)(end - cr), k = left < m->delimiter_len ? left : m->delimiter_len;

        if (memcmp(cr, m->delimiter, k) == 0)
            return (size_t)(cr - p);
    }
    return n;
}

/* Takes data up to the delimiter. Returns how many bytes were used, or an error. */
static ssize_t data_bytes(struct multipart *m, const char *p, size_t n, struct sg_error *e)
{
    size_t used = 0, matched = m->matched;
    int r = 0;

    if (matched == 0) {
        used = plain_bytes(m, p, n);
        r = emit(m, p, used, e);
        if (r < 0)
            return r;
    }
    for (; used < n && matched < m->delimiter_len && p[used] == m->delimiter[matched]; used++)
        matched++;
    m->matched = matched;
    if (matched == m->delimiter_len) {
        r = end_delimiter(m, e);
    } else if (used < n) {
        m->matched = 0;
        r = emit(m, m->delimiter, matched, e);
    }
    return r < 0 ? r : (ssize_t)used;
}

/* Takes a byte after a delimiter: white space and the end of the line, or the two dashes of the
 * last delimiter. */
static int after_byte(struct multipart *m, char c, struct sg_error *e)
{
    if (m->state == AFTER && (c == ' ' || c == '\t') && m->padding++ < PADDING_MAX)
        return 0;
    if (m->state == AFTER && c == '\r')
        m->state = AFTER_LF;
    else if (m->state == AFTER && c == '-' && m->padding == 0)
        m->state = AFTER_DASH;
    else if (m->state == AFTER_LF && c == '\n')
        m->state = HEADERS;
    else if (m->state == AFTER_DASH && c == '-')
        m->state = END;
    else
        return bad(e, "a boundary is not followed by the end of its line");
    return 0;
}

int multipart_feed(struct multipart *m, const char *data, size_t len, struct sg_error *e)
{
    size_t i = 0;

    if (m->error < 0)
        return err_set(e, SG_ERR_INVALID, m->error, "the multipart body was refused before");
    while (i < len && m->state != END) {
        ssize_t r;

        if (m->state == PREAMBLE || m->state == DATA) {
            r = data_bytes(m, data + i, len - i, e);
            i += r > 0 ? (size_t)r : 0;
        } else {
            r = m->state == HEADERS ? header_byte(m, data[i], e) : after_byte(m, data[i], e);
            i++;
        }
        if (r < 0)
            return m->error = (int)r;
    }
    return 0;
}

int multipart_end(struct multipart *m, struct sg_error *e)
{
    if (m->error < 0)
        return err_set(e, SG_ERR_INVALID, m->error, "the multipart body was refused before");
    return m->state == END ? 0 : bad(e, "it ends before the closing boundary");
}
