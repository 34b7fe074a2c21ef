/* The sudo door: a socket in the sandbox that every user may connect to.
 *
 * The agent itself only listens. For each connection it makes a child, which accepts, reads and
 * serves it. So nothing that is sent there ever reaches pid 1, not even a harmful descriptor. */
#pragma once

#include "lib/loop/loop.h"

#define DOOR_SESSIONS_MAX 64

struct agent;
struct agent_config;

struct door {
    struct agent *agent;
    struct loop_source listen; /* not watched while a child is about to accept, or DOOR_SESSIONS_MAX
                                * are under way */
    int fd;                    /* -1: closed */
    unsigned sessions;
    struct loop_timer retry;
};

void door_init(struct door *d, struct agent *a);
/* Call it before the first program starts. If it fails, the sandbox works, but without sudo. */
void door_open(struct door *d);
void door_done(struct door *d);

/* sudo_session.c: accepts one connection and serves it. Closes ready_fd once it has accepted. */
_Noreturn void sudo_session(int listen_fd, int ready_fd, const struct agent_config *config);
