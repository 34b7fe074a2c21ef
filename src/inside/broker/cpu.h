/* Everything that depends on the processor: the registers of a stopped process, and the few
 * instructions that work through a table of system calls. On a processor without an implementation
 * there are no twins. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#ifdef __x86_64__
#define CPU_KNOWN 1
#else
#define CPU_KNOWN 0
#endif

/* One entry of a table. The code makes one call after the other until an entry's nr is
 * CPU_TABLE_END, and then traps. Anybody who may send the process signals can make it stop with the
 * same trap before the end. So `ret` is CPU_NOT_MADE until the call has been made. */
struct cpu_call {
    int64_t nr;
    int64_t args[6];
    int64_t ret; /* filled in by the code */
};
#define CPU_TABLE_END (-1)
#define CPU_NOT_MADE  (-ECANCELED)

extern const uint8_t cpu_code[];
extern const size_t cpu_code_len;

#define CPU_EXTENDED_MAX 16384

/* The whole state of a stopped thread. */
struct cpu_state {
    struct user_regs_struct regs;
    uint8_t extended[CPU_EXTENDED_MAX]; /* floating point and vectors */
    size_t extended_len;
    uint64_t sigmask;
};

/* Each returns 0 or -errno. */
int cpu_save(pid_t pid, struct cpu_state *ret);
int cpu_load(pid_t pid, const struct cpu_state *s);
/* Whether the state was saved inside a blocking system call that reads from `fd`: returns the
 * address of its system-call instruction, or 0. */
uint64_t cpu_reading_from(pid_t pid, const struct cpu_state *s, int fd);
/* Changes the state so that the interrupted call is made again. */
void cpu_restart_call(struct cpu_state *s);
/* Changes the state so that the thread goes on from where it is, whatever call it was in. */
void cpu_leave_call(struct cpu_state *s);
/* An address in the thread's stack that it does not use. */
uint64_t cpu_below_stack(const struct cpu_state *s);
/* The address of the system-call instruction if the thread is inside any call, else 0. */
uint64_t cpu_call_of(pid_t pid, const struct cpu_state *s);
/* For a thread that is inside no call: cpu_lend_call writes a system-call instruction over the next
 * instruction of the thread. Everybody who has the memory must be stopped. cpu_take_call puts the
 * old bytes back. */
int cpu_lend_call(pid_t pid, const struct cpu_state *s, uint64_t *ret_at, long *ret_saved);
int cpu_take_call(pid_t pid, const struct cpu_state *s, long saved);
/* Makes the memory at that place the process's own, by writing a word over itself. It may be the
 * memory of a file that others can write to. 0 or -errno. */
int cpu_own_call(pid_t pid, uint64_t at);
/* Whether the thread runs instructions of the kind that this implementation knows. */
bool cpu_native(const struct cpu_state *s);
/* Whether there is a system-call instruction at `at`. */
bool cpu_is_call(pid_t pid, uint64_t at);
/* For a process stopped at the entry of a call: whether it is this call, made at the instruction
 * `at`. */
bool cpu_enters(pid_t pid, uint64_t at, const struct cpu_call *c);
/* Each sets the registers so that the process, once continued, makes one call at the instruction
 * `at`, or works through a table. `s` is any saved state of the process. */
int cpu_aim_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c);
int cpu_aim_table(pid_t pid, const struct cpu_state *s, uint64_t code, uint64_t table,
                  uint64_t stack);
/* The result of the call that was just made. */
int cpu_result(pid_t pid, int64_t *ret);
