/* The memory of a request, and the functions that read from it. */
#include <assert.h>

#include "lib/http/impl.h"

struct req *req_new(const char *head, size_t len, const struct head_scan *scan, int *ret_status,
                    const char **ret_why)
{
    size_t text = len - scan->start, table = scan->headers * sizeof(struct http_header);
    /* One allocation: the request, the table of headers, the text they point into. */
    char *block = xcalloc(1, sizeof(struct req) + table + text + 1);
    struct req *r = (struct req *)(void *)block;
    struct http_header *headers = (struct http_header *)(void *)(block + sizeof(struct req));
    char *copy = block + sizeof(struct req) + table;

    static_assert(sizeof(struct req) % _Alignof(struct http_header) == 0, "alignment");
    memcpy(copy, head + scan->start, text);
    strbuf_init(&r->headers, HTTP_HEADERS_OUT_MAX);
    strbuf_init(&r->collected, 0);
    int status = head_parse(r, copy, text, headers, scan->headers, ret_why);
    if (status < 0) {
        *ret_status = -status;
        req_free(r);
        return NULL;
    }
    r->body_left = r->pub.content_length > 0 ? (uint64_t)r->pub.content_length : 0;
    r->body_over = r->pub.content_length == 0;
    id_random(r->pub.id);
    return r;
}

void req_free(struct req *r)
{
    make_forget(r->job);
    make_room_leave(r);
    LIST_EACH(struct arena_block, b, &r->blocks, link)
        free(b);
    strbuf_done(&r->headers);
    if (r->pub.body_secret)
        strbuf_wipe(&r->collected);
    else
        strbuf_done(&r->collected);
    free(r);
}

void *http_req_alloc(struct http_req *req, size_t size)
{
    struct req *r = req_of(req);
    struct arena_block *b = xcalloc(1, sizeof(*b) + size);

    list_push(&r->blocks, &b->link);
    return b->data;
}

void http_failed(struct http_req *req, int status, const char *message)
{
    size_t len = strnlen(message, HTTP_FAULT_MAX);
    char *text;

    if (req->fault)
        return;
    text = http_req_alloc(req, len + 1);
    memcpy(text, message, len);
    req->fault = status;
    req->fault_text = text;
}

const char *http_header_get(const struct http_req *req, const char *name)
{
    for (size_t i = 0; i < req->n_headers; i++)
        if (strcmp(req->headers[i].name, name) == 0)
            return req->headers[i].value;
    return NULL;
}

bool http_req_over(const struct http_req *req)
{
    const struct req *r = req_of(req);

    return r->conn->gone || r->answer == ANSWER_DONE;
}

bool http_started(const struct http_req *req)
{
    return req_of(req)->started;
}
