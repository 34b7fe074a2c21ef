/* What depends on the processor: registers of a stopped process, and the few instructions that work
 * off a table of system calls. Without an implementation for it, twins are not to be had. */
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

/* One entry of a table. The code works until an entry's nr is CPU_TABLE_END, then traps. Whoever
 * may send the process signals can make it stop with the same trap before: what a call returns is
 * CPU_NOT_MADE until it is made. */
struct cpu_call {
    int64_t nr;
    int64_t args[6];
    int64_t ret; /* filled in */
};
#define CPU_TABLE_END (-1)
#define CPU_NOT_MADE  (-ECANCELED)

extern const uint8_t cpu_code[];
extern const size_t cpu_code_len;

#define CPU_EXTENDED_MAX 16384

/* All that makes up the state of a stopped thread. */
struct cpu_state {
    struct user_regs_struct regs;
    uint8_t extended[CPU_EXTENDED_MAX]; /* floating point and vectors */
    size_t extended_len;
    uint64_t sigmask;
};

/* Each 0 or -errno. */
int cpu_save(pid_t pid, struct cpu_state *ret);
int cpu_load(pid_t pid, const struct cpu_state *s);
/* The state was saved inside a blocking system call that reads from `fd`: where its instruction is,
 * or 0 if it was not. */
uint64_t cpu_reading_from(pid_t pid, const struct cpu_state *s, int fd);
/* Changes the state so that the interrupted call is made again. */
void cpu_restart_call(struct cpu_state *s);
/* Where its system-call instruction is, if it is inside any call; else 0. */
uint64_t cpu_call_of(pid_t pid, const struct cpu_state *s);
/* For a thread that is in none: writes such an instruction over the one that it would run next, all
 * that has the memory being stopped. cpu_take_call puts back what was there. */
int cpu_lend_call(pid_t pid, const struct cpu_state *s, uint64_t *ret_at, long *ret_saved);
int cpu_take_call(pid_t pid, const struct cpu_state *s, long saved);
/* The memory that the instruction is in becomes the process's own: it may be that of a file, which
 * others can write to. 0 or -errno. */
int cpu_own_call(pid_t pid, uint64_t at);
/* Runs instructions of the kind that this file knows. */
bool cpu_native(const struct cpu_state *s);
/* There is a system-call instruction. */
bool cpu_is_call(pid_t pid, uint64_t at);
/* Stopped at the entry of a call: it is this one, made at the instruction `at`. */
bool cpu_enters(pid_t pid, uint64_t at, const struct cpu_call *c);
/* Sets the registers so that the process, once continued, makes one call at the instruction `at`,
 * or works off a table. `s` is any state of it. */
int cpu_aim_call(pid_t pid, const struct cpu_state *s, uint64_t at, const struct cpu_call *c);
int cpu_aim_table(pid_t pid, const struct cpu_state *s, uint64_t code, uint64_t table,
                  uint64_t stack);
/* What the call just made has returned. */
int cpu_result(pid_t pid, int64_t *ret);
