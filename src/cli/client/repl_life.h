/* The sandbox below the prompt: one that was named, or one of our own.
 *
 * Our own lives for --timeout after the last sign of somebody at the keyboard: each cell and, now
 * and then, each key extends it. It ends with the session unless it is to be kept. One that was
 * named keeps its time as it is, unless --timeout was given too. */
#pragma once

#include "cli/client/sandbox.h"
#include "cli/client/repl_call.h"
#include "cli/client/repl_options.h"

struct repl_life {
    struct client *client;
    const struct repl_options *options;
    struct sandbox sandbox; /* its port for code */
    char *id;               /* NULL: there is none */
    bool own;
    bool gone;             /* it has ended by itself */
    uint64_t extended_ns;  /* when its time began anew, 0: it is not ours to extend */
    uint64_t looked_ns;    /* when we asked whether it is still there */
    struct repl_call call; /* that extends it */
};

void repl_life_init(struct repl_life *l, struct client *client, struct repl_watch *watch,
                    const struct repl_options *options);
/* Makes a sandbox, or finds the one that was named (`fresh`: makes one in any case). */
int repl_life_begin(struct repl_life *l, bool fresh, struct sg_error *e);
/* How long one of our own lives when nobody is there. */
uint64_t repl_life_timeout_s(const struct repl_life *l);
/* Somebody is there. */
void repl_life_touch(struct repl_life *l);
/* Whether it has just been found to be over. Asks the server when its time should be. */
bool repl_life_is_over(struct repl_life *l);
/* Ends what is our own and is not to be kept. Says so if that fails. */
void repl_life_end(struct repl_life *l);
void repl_life_done(struct repl_life *l);
