/* A stopped process and its tracer. Every wait has a deadline; SIGCHLD is blocked throughout. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "inside/broker/cpu.h"

/* Takes hold of a child of ours, and of every child it will have; they die with us. */
int tracee_seize(pid_t pid, struct sg_error *e);
/* Takes hold of a thread that is not ours, and asks it to stop. It is not changed by that, and goes
 * on if we die. 0 or -errno. */
int tracee_remote_calls(pid_t pid);
/* ... and waits until it has. -ESRCH: it is dead, and reaped; -ETIMEDOUT. */
int tracee_stop_by(pid_t pid, uint64_t deadline_ns);
/* Stops it wherever it is. */
int tracee_stop(pid_t pid, struct sg_error *e);
/* Waits for its next stop: what stopped it, as waitpid says. -ESRCH: it is dead, and reaped. */
int tracee_wait(pid_t pid, int *ret_status, struct sg_error *e);
/* Continues it until a ptrace event (PTRACE_EVENT_FORK, _CLONE) and tells its message. */
int tracee_run_until(pid_t pid, int event, unsigned long *ret_message, struct sg_error *e);
/* Takes the process, stopped, to the entry of exactly this call, made at the instruction `at`. Its
 * memory may be another's to write: if it comes to stand anywhere else it is killed, and reaped. */
int tracee_enter_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                      struct sg_error *e);
/* From the entry of a clone to its end, where the process rests. Nothing but the call is run.
 * *ret: the child, also with an error, unless it is 0. */
int tracee_finish_fork(pid_t pid, pid_t *ret, struct sg_error *e);
int tracee_continue(pid_t pid, struct sg_error *e);
/* Waits for the stop at birth of a child that was announced by an event. */
int tracee_await_birth(pid_t pid, struct sg_error *e);
/* Waits for the trap at the end of a table. */
int tracee_await_trap(pid_t pid, struct sg_error *e);
/* Continues it until then. */
int tracee_run_table(pid_t pid, struct sg_error *e);
/* Makes one system call at the instruction `at`. Negative results of the call are errors. */
int tracee_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c,
                int64_t *ret, struct sg_error *e);
int tracee_release(pid_t pid, struct sg_error *e);
/* The same for one whose end is as good. */
void tracee_let_go(pid_t pid);
/* SIGKILL, and reaped. */
void tracee_kill(pid_t pid);

int tracee_read(pid_t pid, uint64_t at, void *ret, size_t len);
int tracee_write(pid_t pid, uint64_t at, const void *data, size_t len);
