/* Agents to talk to, over a pipe or over a WebSocket: messages out, messages in, each a line
 * without its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct peer {
    const char *name;
    bool ws;
    int in, out; /* what it says, what it is told; one socket for both if ws */
    int pid;
    char *buffer; /* came and not looked at yet */
    size_t from, have, size;
    char *queue; /* to be sent */
    size_t sent, queued, room;
};

_Noreturn void fail(const char *what);
uint64_t now_ns(void);

/* argv: a command. */
void peer_pipe(struct peer *p, const char *name, char **argv);
/* The agent `id` of the server at the loopback's `port`. */
void peer_ws(struct peer *p, const char *name, int port, const char *key, const char *id);
void peer_end(struct peer *p);

void peer_queue(struct peer *p, const char *text, size_t len);
/* Sends what is queued and reads what has come; waits until something could be done. */
void peer_turn(struct peer *p);
/* The next message that is there, NULL: none yet. */
const char *peer_next(struct peer *p, size_t *ret_len);
/* The same, and waits for it. */
const char *peer_wait(struct peer *p, size_t *ret_len);
