#include "cli/local/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "lib/base/base.h"

int signals_open(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_taken(int signal_fd)
{
    struct signalfd_siginfo info;

    return read(signal_fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}
