/* The part of the benchmark that is in C: it holds engines and times what takes a millisecond.
 *
 * Each verb prints its raw figures as JSON lines. Contenders take turns within one loop, and every
 * other round runs backwards, so that whatever else the machine does meets all of them alike. */
#pragma once

#include <stddef.h>

#include "sandglass.h"

#define BENCH_DIR "/bench" /* where the directory with the programs is mounted inside */

/* One verb each; argv[0] is the first argument behind the verb. They return the exit status. */
int verb_engine(int argc, char **argv);
int verb_commands(int argc, char **argv);
int verb_series(int argc, char **argv);
int verb_overhead(int argc, char **argv);
int verb_hold(int argc, char **argv);
int verb_cycles(int argc, char **argv);

double now_us(void);
long parse_count(const char *text);
_Noreturn void fail(const char *what, const char *why);

/* Starts a program without a shell, standard input and output being /dev/null, and waits for its
 * end. Anything but exit status 0 ends the benchmark. */
void spawn_and_wait(char *const *argv);
/* The same, keeping what it prints. */
void spawn_and_read(char *const *argv, char *ret, size_t size);

/* Times of one contender. */
struct series {
    const char *name;
    double *us;
    size_t n, room;
};

void series_add(struct series *s, double us);
void series_print(const struct series *s);

struct sg_engine *engine_open(unsigned max_sandboxes);
struct sg_sandbox *sandbox_open(struct sg_engine *engine, const struct sg_options *options);
/* Runs a program that must end with status 0. `ret` is to be freed, or NULL. */
void sandbox_exec(struct sg_sandbox *s, const char *const *argv, struct sg_result *ret);
void sandbox_close(struct sg_sandbox *s);

/* Tells the other side of the pipes where we are and waits until it has looked. */
void checkpoint(const char *name);
