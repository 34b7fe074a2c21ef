/* Answers of servers inside a sandbox. The first byte says what was asked and in how large pieces
 * the rest arrives. Whatever comes, one head at most is passed on, its strings are whole, and the
 * same bytes in one piece mean the same. */
#include <assert.h>

#include "front/forward/response.h"

struct seen {
    struct response response;
    unsigned heads;
    int status;
    size_t body;
};

static void on_head(struct response *r)
{
    struct seen *s = r->owner;

    s->heads++;
    s->status = r->status;
    assert(r->n_headers <= RESPONSE_HEADERS_MAX);
    for (size_t i = 0; i < r->n_headers; i++) {
        assert(r->headers[i].name[0] != '\0');
        assert(r->headers[i].name[strcspn(r->headers[i].name, "\r\n: ")] == '\0');
        assert(r->headers[i].value[strcspn(r->headers[i].value, "\r\n")] == '\0');
    }
}

static void on_body(struct response *r, const char *p, size_t len)
{
    struct seen *s = r->owner;

    (void)p;
    assert(s->heads == 1);
    s->body += len;
    assert(r->length < 0 || s->body <= (size_t)r->length);
}

static int run(struct seen *s, const uint8_t *data, size_t len, uint8_t mode, size_t step)
{
    int res = 0;

    *s = (struct seen){.response = {.owner = s,
                                    .to_head = mode & 1,
                                    .may_upgrade = mode & 2,
                                    .on_head = on_head,
                                    .on_body = on_body}};
    response_init(&s->response);
    while (res == 0 && len > 0 && s->response.state < RESPONSE_DONE) {
        size_t n = len < step ? len : step, used = 0;
        res = response_feed(&s->response, (const char *)data, n, &used, NULL);
        assert(res < 0 || used == n || s->response.state >= RESPONSE_DONE);
        data += used;
        len -= used;
    }
    if (res == 0)
        res = response_eof(&s->response, NULL);
    assert(s->heads <= 1 && (res < 0 || s->heads == 1));
    response_done(&s->response);
    return res;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct seen pieces, whole;

    if (len == 0)
        return 0;
    int a = run(&pieces, data + 1, len - 1, data[0], data[0] / 4 + 1);
    int b = run(&whole, data + 1, len - 1, data[0], len);
    assert(a == b && pieces.heads == whole.heads && pieces.status == whole.status);
    if (a == 0)
        assert(pieces.body == whole.body);
    return 0;
}
