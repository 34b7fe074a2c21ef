/* Helpers that the checks are made of. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "cli/local/doctor.h"

#define PROBE_SECONDS 10

void check_set(struct check_result *r, enum check_state state, const char *fmt, ...)
{
    va_list ap;

    r->state = state;
    va_start(ap, fmt);
    vsnprintf(r->value, sizeof(r->value), fmt, ap);
    va_end(ap);
}

void check_fix(struct check_result *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->fix, sizeof(r->fix), fmt, ap);
    va_end(ap);
}

int probe_in_child(int (*fn)(void *arg), void *arg)
{
    int status;
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(PROBE_SECONDS);
        int r = -fn(arg);
        _exit(r >= 0 && r < 255 ? r : 255);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (WIFEXITED(status))
        return -WEXITSTATUS(status);
    return WTERMSIG(status) == SIGALRM ? -ETIMEDOUT : -EINTR;
}

long probe_sysctl(const char *name)
{
    AUTO(free_p) char *text = NULL;
    char path[128];
    size_t len;

    snprintf(path, sizeof(path), "/proc/sys/%s", name);
    if (file_read(AT_FDCWD, path, 4096, &text, &len) < 0)
        return -1;
    return strtol(text, NULL, 10);
}
