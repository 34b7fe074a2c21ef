/* A stopped process and its tracer, the broker. Every wait has a deadline. SIGCHLD is blocked
 * throughout. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "inside/broker/cpu.h"

/* Traces a child of ours, and every child it will have; they die with us. */
int tracee_seize(pid_t pid, struct sg_error *e);
/* Traces a thread that is not ours, and asks it to stop. Tracing does not change the thread, and it
 * goes on if we die. 0 or -errno. */
int tracee_remote_calls(pid_t pid);
/* Waits until such a thread has stopped. -ESRCH: it is dead, and reaped; -ETIMEDOUT. */
int tracee_stop_by(pid_t pid, uint64_t deadline_ns);
/* Stops the process wherever it is, and waits for that. */
int tracee_stop(pid_t pid, struct sg_error *e);
/* Waits for the next stop. *ret_status is as from waitpid. -ESRCH: the process is dead, and
 * reaped. */
int tracee_wait(pid_t pid, int *ret_status, struct sg_error *e);
/* Waits until the process, which runs, has executed another program. It stops before the first
 * instruction of that. */
int tracee_await_exec(pid_t pid, struct sg_error *e);
/* Continues the process until a ptrace event (PTRACE_EVENT_FORK, _CLONE), and returns the event's
 * message. */
int tracee_run_until(pid_t pid, int event, unsigned long *ret_message, struct sg_error *e);
/* Brings the stopped process to the entry of exactly this call, made at the instruction `at`.
 * Others may be able to write its memory: if it stops anywhere else, it is killed and reaped. */
int tracee_enter_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                      struct sg_error *e);
/* Continues from the entry of a clone to its end, where the process stops again. Nothing but the
 * call is run. *ret is the child, even if an error is returned; 0: there is none. */
int tracee_finish_fork(pid_t pid, pid_t *ret, struct sg_error *e);
int tracee_continue(pid_t pid, struct sg_error *e);
/* Waits for the first stop of a new child that an event announced. */
int tracee_await_start(pid_t pid, struct sg_error *e);
/* Waits for the trap at the end of a table. */
int tracee_await_trap(pid_t pid, struct sg_error *e);
/* Continues the process until that trap. */
int tracee_run_table(pid_t pid, struct sg_error *e);
/* Makes one system call at the instruction `at`. Negative results of the call are errors. ret may be
 * NULL. */
int tracee_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                int64_t *ret, struct sg_error *e);
int tracee_release(pid_t pid, struct sg_error *e);
/* The same for a process that may just as well have died. */
void tracee_let_go(pid_t pid);
/* Sends SIGKILL and reaps the process. */
void tracee_kill(pid_t pid);

int tracee_read(pid_t pid, uint64_t at, void *ret, size_t len);
int tracee_write(pid_t pid, uint64_t at, const void *data, size_t len);
