#include "cli/client/repl_watch.h"

#include <poll.h>
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

static bool reap(struct repl_watch *w)
{
    bool any = false;
    CURLMsg *m;
    int left;

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

        if (sig == SIGINT)
            turn->interrupt = true;
        else if (sig == SIGWINCH)
            turn->resized = true;
        else if (sig == SIGCONT)
            turn->continued = true;
        else
            w->ending = sig;
    }
}

struct repl_turn repl_watch_turn(struct repl_watch *w, int fd, int timeout_ms)
{
    struct curl_waitfd waits[] = {{.fd = w->signal_fd, .events = CURL_WAIT_POLLIN},
                                  {.fd = fd, .events = CURL_WAIT_POLLIN}};
    struct pollfd input = {.fd = fd, .events = POLLIN};
    struct repl_turn turn = {0};
    int running;

    curl_multi_perform(w->multi, &running);
    /* If a transfer has ended, return at once: its owner must see that before the next wait. */
    if (!reap(w))
        curl_multi_poll(w->multi, waits, fd >= 0 ? 2 : 1, timeout_ms, NULL);
    take_signals(w, &turn);
    /* libcurl does not report that the other side has hung up, so we look ourselves. */
    turn.input = fd >= 0 && poll(&input, 1, 0) > 0;
    return turn;
}
