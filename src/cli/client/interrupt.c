#include "cli/client/interrupt.h"

#include <signal.h>

#include "lib/base/base.h"

static volatile sig_atomic_t came;
static bool held;

static void note(int sig)
{
    came = sig;
}

void interrupt_watch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = note}; /* no SA_RESTART, so that reads return EINTR */

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        sigaction(signals[i], &action, NULL);
}

int interrupt_signal(void)
{
    return held ? 0 : came;
}

void interrupt_hold(bool on)
{
    held = on;
}
