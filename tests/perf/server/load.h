/* A client that measures a running server over loopback. Blocking sockets, one request at a time on
 * each; what has to happen at once happens in threads, or under one epoll.
 *
 * Each verb prints its raw figures as JSON lines. An unexpected answer ends the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BODY_MAX (256 * 1024)

struct server {
    int port;
    const char *key;
};

struct answer {
    int status;
    size_t len;
    char body[BODY_MAX];
};

struct sandbox {
    char id[64], token[128];
};

/* http.c */
int dial(const struct server *s);
void send_all(int fd, const void *data, size_t len);
/* Reads one answer, chunked or not. What does not fit into the body is read and dropped; the result
 * is the number of bytes it had. */
uint64_t read_answer(int fd, struct answer *ret);
void request(int fd, const char *method, const char *path, const char *headers, const void *body,
             size_t len);
/* Sends, reads and checks the status. */
void call(int fd, const struct server *s, const char *method, const char *path, const char *body,
          int status, struct answer *ret);

/* sandbox.c */
/* The text behind `"name":"`; it must be there. */
void json_field(const char *json, const char *name, char *ret, size_t cap);
void sandbox_create(int fd, const struct server *s, struct sandbox *ret);
void sandbox_kill(int fd, const struct server *s, const struct sandbox *b);
/* Starts `/bin/bash -l -c command` as the SDKs do; the answer is a stream of envelopes. */
void command_start(int fd, const struct sandbox *b, const char *command);
/* The same, until its end; it must be status 0. */
void command_run(int fd, const struct sandbox *b, const char *command);

/* cells.c. Code as it is in JSON, a part of its answer, and the least bytes that this has. */
struct cell {
    const char *name, *code, *says;
    size_t least;
};
const struct cell *cell_named(const char *name);
/* Asks, as the SDKs do. The code must need no escaping in JSON but what it has. */
void cell_ask(int fd, const struct sandbox *b, const char *code);
/* Runs a cell whose value, as text, must be this. */
void cell_run(int fd, const struct sandbox *b, const char *code, const char *value);

/* One verb each; argv[0] is the first argument behind the verb. */
int verb_create(const struct server *s, int argc, char **argv);
int verb_interactive(const struct server *s, int argc, char **argv);
int verb_burst(const struct server *s, int argc, char **argv);
int verb_churn(const struct server *s, int argc, char **argv);
int verb_pause(const struct server *s, int argc, char **argv);
int verb_streams(const struct server *s, int argc, char **argv);
int verb_transfer(const struct server *s, int argc, char **argv);
int verb_health(const struct server *s, int argc, char **argv);
int verb_twins(const struct server *s, int argc, char **argv);
int verb_first_cells(const struct server *s, int argc, char **argv);
int verb_cells(const struct server *s, int argc, char **argv);
int verb_neighbour(const struct server *s, int argc, char **argv);
int verb_crowd(const struct server *s, int argc, char **argv);
int verb_output(const struct server *s, int argc, char **argv);
int verb_forks(const struct server *s, int argc, char **argv);
int verb_fork_fan(const struct server *s, int argc, char **argv);
int verb_checkpoints(const struct server *s, int argc, char **argv);
int verb_rewinds(const struct server *s, int argc, char **argv);
int verb_fork_chain(const struct server *s, int argc, char **argv);
int verb_fork_idle(const struct server *s, int argc, char **argv);
int verb_paths_new(const struct server *s, int argc, char **argv);
int verb_paths_found(const struct server *s, int argc, char **argv);
int verb_paths_run(const struct server *s, int argc, char **argv);
int verb_paths_race(const struct server *s, int argc, char **argv);
int verb_paths_reap(const struct server *s, int argc, char **argv);

double now_us(void);
long count_of(const char *text);
void print_us(const char *name, double us);
/* Memory is read by whoever started us, at the line that says so. */
void checkpoint(const char *name);
_Noreturn void fail(const char *what, const char *why);
