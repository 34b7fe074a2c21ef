/* The lifetime of the prompt's sandbox: one that the user named, or one of our own.
 *
 * Our own sandbox lives for --timeout after the last sign of somebody at the keyboard: each cell
 * and, now and then, each key extends its life. It ends with the session unless --keep is given. A
 * sandbox that the user named keeps its lifetime, unless --timeout was given too. */
#pragma once

#include "cli/client/sandbox.h"
#include "cli/client/repl_watch.h"
#include "cli/client/repl_options.h"

struct repl_life {
    struct client *client;
    const struct repl_options *options;
    struct sandbox sandbox; /* connected to the code interpreter's port */
    char *id;               /* NULL: there is no sandbox */
    bool own;
    bool gone;             /* the sandbox has ended by itself */
    uint64_t extended_ns;  /* when its time last began anew; 0: we never extend it */
    uint64_t looked_ns;    /* when we last asked whether it still exists */
    struct repl_call call; /* the call that extends its time */
};

void repl_life_init(struct repl_life *l, struct client *client, struct repl_watch *watch,
                    const struct repl_options *options);
/* Makes a sandbox, or opens the one that the user named. `fresh`: makes one in any case. */
int repl_life_begin(struct repl_life *l, bool fresh, struct sg_error *e);
/* How long a sandbox of our own lives after the last sign of the user. */
uint64_t repl_life_timeout_s(const struct repl_life *l);
/* Notes a sign of the user, and extends the sandbox's time if enough of it has passed. */
void repl_life_touch(struct repl_life *l);
/* Whether the sandbox has just been found to have ended. Asks the server once its time should be
 * over. */
bool repl_life_is_over(struct repl_life *l);
/* Ends a sandbox of our own unless it is to be kept. Prints an error if that fails. */
void repl_life_end(struct repl_life *l);
void repl_life_done(struct repl_life *l);
