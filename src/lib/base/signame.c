#include "lib/base/signame.h"

#include <signal.h>

#include "lib/base/base.h"

const char *signal_name(int sig)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",       [SIGINT] = "INT",   [SIGQUIT] = "QUIT",   [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP",     [SIGABRT] = "ABRT", [SIGBUS] = "BUS",     [SIGFPE] = "FPE",
        [SIGKILL] = "KILL",     [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV",   [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE",     [SIGALRM] = "ALRM", [SIGTERM] = "TERM",   [SIGCHLD] = "CHLD",
        [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",   [SIGTTIN] = "TTIN",
        [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",   [SIGXFSZ] = "XFSZ",
        [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGIO] = "IO",
        [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
    };

    return sig > 0 && (size_t)sig < ARRAY_SIZE(names) && names[sig] ? names[sig] : "?";
}
