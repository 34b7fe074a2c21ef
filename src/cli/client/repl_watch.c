#include "cli/client/repl_watch.h"

#include <assert.h>
#include <signal.h>
#include <sys/signalfd.h>

int repl_watch_open(struct repl_watch *w, struct sg_error *e)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *w = (struct repl_watch){.multi = curl_multi_init()};
    if (!w->multi)
        abort();
    w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return w->signal_fd < 0 ? err_errno(e, "cannot watch for signals") : 0;
}

void repl_watch_close(struct repl_watch *w)
{
    close_p(&w->signal_fd);
    curl_multi_cleanup(w->multi);
}

void repl_watch_add(struct repl_watch *w, CURL *easy, struct repl_transfer *t)
{
    curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
    curl_multi_add_handle(w->multi, easy);
}

bool repl_watch_run(struct repl_watch *w)
{
    bool any = false;
    CURLMsg *m;
    int left, running;

    curl_multi_perform(w->multi, &running);
    while ((m = curl_multi_info_read(w->multi, &left))) {
        struct repl_transfer *t = NULL;
        CURLcode code = m->data.result;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        curl_multi_remove_handle(w->multi, m->easy_handle);
        t->done(t, code);
        any = true;
    }
    return any;
}

static void take_signals(struct repl_watch *w, struct repl_turn *turn)
{
    struct signalfd_siginfo info;

    while (read(w->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        int sig = (int)info.ssi_signo;

        if (sig == SIGWINCH || sig == SIGCONT) {
            turn->resized |= sig == SIGWINCH;
            turn->continued |= sig == SIGCONT;
            continue;
        }
        if (sig == SIGINT)
            turn->interrupt = true;
        else
            w->ending = sig;
        if (turn->n_signals < REPL_SIGNALS_MAX)
            turn->signals[turn->n_signals++] = sig;
    }
}

struct repl_turn repl_watch_wait(struct repl_watch *w, struct pollfd *fds, size_t n, int timeout_ms)
{
    struct curl_waitfd waits[1 + REPL_FDS_MAX] = {{.fd = w->signal_fd, .events = CURL_WAIT_POLLIN}};
    struct repl_turn turn = {0};
    unsigned n_waits = 1;

    for (size_t i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            waits[n_waits++] = (struct curl_waitfd){
                .fd = fds[i].fd,
                .events = fds[i].events == POLLIN ? CURL_WAIT_POLLIN : CURL_WAIT_POLLOUT};
    curl_multi_poll(w->multi, waits, n_waits, timeout_ms, NULL);
    take_signals(w, &turn);
    /* libcurl does not report that the other side has hung up, so we look ourselves. */
    poll(fds, n, 0);
    return turn;
}

struct repl_turn repl_watch_turn(struct repl_watch *w, int fd, int timeout_ms)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    /* If a transfer has ended, return at once: its owner must see that before the next wait. */
    bool ended = repl_watch_run(w);
    struct repl_turn turn = repl_watch_wait(w, &input, 1, ended ? 0 : timeout_ms);

    turn.input = input.revents != 0;
    return turn;
}

/* ---- a call in the background ---------------------------------------------------------------- */

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
