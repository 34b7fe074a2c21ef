/* One HTTP call in the background: nobody waits for it. */
#pragma once

#include "cli/client/repl_watch.h"
#include "cli/client/web.h"

struct repl_call {
    struct repl_transfer transfer;
    struct repl_watch *watch;
    CURL *easy;
    bool busy;
    struct strbuf url, body;
    struct curl_slist *headers;
    struct web_reply reply;
    /* Called at the end, if not NULL, with the result and the answer. */
    void (*finished)(void *arg, CURLcode code, const struct web_reply *reply);
    void *arg;
};

void repl_call_init(struct repl_call *c, struct repl_watch *watch);
void repl_call_done(struct repl_call *c);
/* Begins a POST; the call must not be busy. The call takes over the buffers and headers. */
void repl_call_post(struct repl_call *c, struct strbuf *url, struct strbuf *body,
                    struct curl_slist **headers);
