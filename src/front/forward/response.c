#include "front/forward/response.h"

#include <string.h>
#include <strings.h>

#include "front/forward/request_head.h"

static struct response *of(llhttp_t *p)
{
    return CONTAINER_OF(p, struct response, parser);
}

static int bad(struct sg_error *e, const char *why)
{
    return err_set(e, SG_ERR_INVALID, -EPROTO, "the answer is not valid HTTP: %s", why);
}

/* ---- llhttp's callbacks ---------------------------------------------------------------------- */

/* The head is in one piece of memory, so llhttp calls each of these once for a header. */
static int on_field(llhttp_t *p, const char *at, size_t len)
{
    struct response *r = of(p);

    if (r->state != RESPONSE_HEAD)
        return 0; /* a trailer: dropped */
    if (r->n_headers == RESPONSE_HEADERS_MAX || len == 0)
        return -1;
    r->headers[r->n_headers++] = (struct http_header){.name = at};
    return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t len UNUSED)
{
    struct response *r = of(p);

    if (r->state == RESPONSE_HEAD)
        r->headers[r->n_headers - 1].value = at;
    return 0;
}

static int on_headers_complete(llhttp_t *p)
{
    struct response *r = of(p);
    int status = p->status_code;

    r->head_seen = true;
    return r->to_head || status < 200 || status == 204 || status == 304; /* true: no body */
}

static int on_body(llhttp_t *p, const char *at, size_t len)
{
    struct response *r = of(p);

    r->on_body(r, at, len);
    return 0;
}

static int on_complete(llhttp_t *p)
{
    of(p)->state = RESPONSE_DONE;
    return HPE_PAUSED;
}

/* ---- the head -------------------------------------------------------------------------------- */

static void start(struct response *r)
{
    r->n_headers = 0;
    r->head_seen = false;
    strbuf_reset(&r->head);
    llhttp_init(&r->parser, HTTP_RESPONSE, &r->settings);
}

void response_init(struct response *r)
{
    strbuf_init(&r->head, RESPONSE_HEAD_MAX);
    llhttp_settings_init(&r->settings);
    r->settings.on_header_field = on_field;
    r->settings.on_header_value = on_value;
    r->settings.on_headers_complete = on_headers_complete;
    r->settings.on_body = on_body;
    r->settings.on_message_complete = on_complete;
    r->state = RESPONSE_HEAD;
    r->length = -1;
    start(r);
}

void response_done(struct response *r)
{
    strbuf_done(&r->head);
}

/* Adds bytes to the head, up to the empty line. Returns how many, or a negative error; *ret_whole
 * says whether the head is complete. */
static ssize_t collect(struct response *r, const char *p, size_t len, bool *ret_whole,
                       struct sg_error *e)
{
    const struct strbuf *h = &r->head;
    char last = h->len > 0 ? h->buf[h->len - 1] : '\n';
    size_t i;

    for (i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if ((c == '\n') != (last == '\r'))
            return bad(e, "a line does not end in CR LF");
        if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
            return bad(e, "a control character in its head");
        if (last == '\n' && (c == ' ' || c == '\t'))
            return bad(e, "a folded line");
        last = (char)c;
        if (c == '\n' && h->len + i >= 3 && (i >= 2 ? p[i - 2] : h->buf[h->len + i - 2]) == '\n')
            break;
    }
    *ret_whole = i < len;
    i += *ret_whole;
    strbuf_add(&r->head, p, i);
    if (r->head.truncated)
        return bad(e, "its head is too large");
    return (ssize_t)i;
}

/* Makes strings of the places that llhttp has found: names end at the colon, values at the end of
 * the line. False: a name is invalid. */
static bool cut_headers(struct response *r)
{
    char *buf = r->head.buf;

    for (size_t i = 0; i < r->n_headers; i++) {
        struct http_header *h = &r->headers[i];
        char *name = buf + (h->name - buf);
        size_t len = strcspn(name, ": \t");

        if (name[len] != ':')
            return false;
        for (size_t k = 0; k < len; k++)
            if (name[k] >= 'A' && name[k] <= 'Z')
                name[k] = (char)(name[k] - 'A' + 'a');
        name[len] = '\0';
        if (!h->value) {
            h->value = "";
            continue;
        }
        char *value = buf + (h->value - buf);
        len = strcspn(value, "\r");
        while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
            len--;
        value[len] = '\0';
    }
    return true;
}

static bool has(const struct response *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].name, name) == 0)
            return true;
    return false;
}

/* Finds out how the body ends. llhttp does the same by its own rules, which are less strict. */
static int check_framing(struct response *r, struct sg_error *e)
{
    const char *length = header_single(r->headers, r->n_headers, "content-length");
    const char *coding = header_single(r->headers, r->n_headers, "transfer-encoding");

    if (has(r, "content-length") && has(r, "transfer-encoding"))
        return bad(e, "both Content-Length and Transfer-Encoding");
    if (has(r, "transfer-encoding") &&
        (!coding || strcasecmp(coding, "chunked") != 0 || r->parser.http_minor == 0))
        return bad(e, "a Transfer-Encoding other than chunked");
    r->length = -1;
    if (!has(r, "content-length"))
        return 0;
    size_t digits = length ? strspn(length, "0123456789") : 0;
    if (digits == 0 || digits > 18 || length[digits] != '\0')
        return bad(e, "a Content-Length that is not a number");
    r->length = strtoll(length, NULL, 10);
    return 0;
}

static int take_head(struct response *r, struct sg_error *e)
{
    llhttp_errno_t err = llhttp_execute(&r->parser, r->head.buf, r->head.len);
    bool complete = r->state == RESPONSE_DONE;

    r->state = RESPONSE_HEAD;
    if (!r->head_seen || r->parser.http_major != 1 ||
        (err != HPE_OK && err != HPE_PAUSED && err != HPE_PAUSED_UPGRADE))
        return bad(e, llhttp_errno_name(err));
    r->status = r->parser.status_code;
    if (r->status < 100 || !cut_headers(r))
        return bad(e, "a bad status, or a bad header name");
    if (check_framing(r, e) < 0)
        return -EPROTO;

    if (r->status == 101) {
        if (!r->may_upgrade || !header_single(r->headers, r->n_headers, "upgrade"))
            return bad(e, "it switches protocols without being asked");
        r->state = RESPONSE_UPGRADED;
    } else if (r->status < 200) {
        if (++r->interim > RESPONSE_INTERIM_MAX)
            return bad(e, "too many interim answers");
        start(r);
        return 0;
    } else {
        r->state = complete ? RESPONSE_DONE : RESPONSE_BODY;
        llhttp_resume(&r->parser);
    }
    r->on_head(r);
    strbuf_done(&r->head); /* frees the head now: the body may take long */
    strbuf_init(&r->head, RESPONSE_HEAD_MAX);
    return 0;
}

/* ---- the whole answer ------------------------------------------------------------------------ */

static int take_body(struct response *r, const char *p, size_t len, size_t *ret_used,
                     struct sg_error *e)
{
    llhttp_errno_t err = llhttp_execute(&r->parser, p, len);

    *ret_used = len;
    if (err == HPE_OK || r->state == RESPONSE_DONE)
        return 0;
    return bad(e, llhttp_errno_name(err));
}

int response_feed(struct response *r, const char *p, size_t len, size_t *ret_used,
                  struct sg_error *e)
{
    size_t used = 0;
    int res = 0;

    while (res == 0 && used < len && r->state == RESPONSE_HEAD) {
        bool whole = false;
        ssize_t n = collect(r, p + used, len - used, &whole, e);
        if (n < 0)
            return (int)n;
        used += (size_t)n;
        if (whole)
            res = take_head(r, e);
    }
    if (res == 0 && used < len && r->state == RESPONSE_BODY) {
        size_t n = 0;
        res = take_body(r, p + used, len - used, &n, e);
        used += n;
    }
    *ret_used = used;
    return res;
}

int response_eof(struct response *r, struct sg_error *e)
{
    if (r->state == RESPONSE_BODY)
        llhttp_finish(&r->parser);
    return r->state == RESPONSE_DONE || r->state == RESPONSE_UPGRADED ? 0
                                                                      : bad(e, "it ends too early");
}
