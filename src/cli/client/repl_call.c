#include "cli/client/repl_call.h"

#include <assert.h>

static void forget(struct repl_call *c)
{
    strbuf_done(&c->url);
    strbuf_done(&c->body);
    web_headers_done(&c->headers);
    web_reply_done(&c->reply);
    c->reply = (struct web_reply){0};
    c->busy = false;
}

static void done(struct repl_transfer *t, CURLcode code)
{
    struct repl_call *c = CONTAINER_OF(t, struct repl_call, transfer);

    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &c->reply.status);
    if (c->finished)
        c->finished(c->arg, code, &c->reply);
    forget(c);
}

void repl_call_init(struct repl_call *c, struct repl_watch *watch)
{
    *c = (struct repl_call){.transfer.done = done, .watch = watch, .easy = curl_easy_init()};
    if (!c->easy)
        abort();
}

void repl_call_done(struct repl_call *c)
{
    if (c->busy)
        curl_multi_remove_handle(c->watch->multi, c->easy);
    forget(c);
    curl_easy_cleanup(c->easy);
}

void repl_call_post(struct repl_call *c, struct strbuf *url, struct strbuf *body,
                    struct curl_slist **headers)
{
    assert(!c->busy);
    c->busy = true;
    c->url = *url;
    c->body = *body;
    c->headers = steal_ptr(headers);
    *url = *body = (struct strbuf){0};
    struct web_request q = {
        .method = "POST", .url = c->url.buf, .headers = c->headers, .body = &c->body};
    web_prepare_call(c->easy, &q, &c->reply);
    repl_watch_add(c->watch, c->easy, &c->transfer);
}
