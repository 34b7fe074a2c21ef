/* Starting one program as one user: fork, session, standard descriptors, confinement, exec. */
#pragma once

#include <sys/types.h>

#include "inside/agent/agent.h"

#define LAUNCH_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* How the error begins when the program itself is why it could not be started. */
#define LAUNCH_CANNOT_RUN "cannot run '"

struct launch {
    const struct agent_user *as;
    const char *program;     /* without a slash: looked up in the PATH of envp */
    const char *const *argv; /* NULL-terminated, as is envp */
    const char *const *envp;
    int cwd_fd;        /* O_PATH; entered with the permissions of `as` */
    const char *cwd;   /* its path, for the error */
    bool cwd_optional; /* as a last resort the program starts in / */
    int stdio[3];
    int control; /* becomes descriptor 3; -1: none */
    bool tty;    /* stdio[0] becomes the controlling terminal */
};

/* A pipe between us and a program, our end of it non-blocking. Call as the program's user: it may
 * open /dev/stdout, which is a check on the pipe's owner. 0 or -errno. */
int launch_pipe(int *ret_read, int *ret_write, bool ours_is_write);

/* Returns as soon as there is a child, also one that will fail. *ret_report_fd is non-blocking. */
int launch_start(const struct launch *l, const struct agent_config *config, pid_t *ret_pid,
                 int *ret_report_fd, struct sg_error *e);
/* How many were started so far, sudo's among them. */
uint64_t launch_count(void);
void launch_counts(void); /* one more, that was not started here */
/* What became of it: 1 exec has succeeded (or the child was killed), 0 not known yet, negative with
 * *e filled: it could not be started and has ended. */
int launch_result(int report_fd, struct sg_error *e);
