/* Starts one program as one user: fork, session, standard descriptors, confinement, exec. */
#pragma once

#include <sys/types.h>

#include "inside/agent/agent.h"

#define LAUNCH_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* How the error message begins if the program itself is the reason that it could not be started. */
#define LAUNCH_CANNOT_RUN "cannot run '"

struct launch {
    const struct agent_user *as;
    const char *program;     /* without a slash it is looked up in the PATH of envp */
    const char *const *argv; /* NULL-terminated, as is envp */
    const char *const *envp;
    int cwd_fd;        /* O_PATH; entered with the permissions of `as` */
    const char *cwd;   /* path of cwd_fd, for the error message */
    bool cwd_optional; /* if cwd_fd cannot be entered, the program starts in / */
    int stdio[3];
    int control; /* becomes descriptor 3; -1: none */
    bool tty;    /* stdio[0] becomes the controlling terminal */
};

/* Makes a pipe between us and a program; our end is non-blocking. Call it with the permissions of
 * the program's user: the program may open /dev/stdout, and for that the kernel checks who owns the
 * pipe. 0 or -errno. */
int launch_pipe(int *ret_read, int *ret_write, bool ours_is_write);

/* Returns as soon as there is a child, even one that will fail. *ret_report_fd is non-blocking. */
int launch_start(const struct launch *l, const struct agent_config *config, pid_t *ret_pid,
                 int *ret_report_fd, struct sg_error *e);
/* How many programs have been started so far, including those of sudo. */
uint64_t launch_count(void);
void launch_counts(void); /* counts one that was started elsewhere */
/* How the launch went. 1: exec has succeeded, or the child was killed; 0: not known yet; negative,
 * with *e filled: the program could not be started and the child has ended. */
int launch_result(int report_fd, struct sg_error *e);
