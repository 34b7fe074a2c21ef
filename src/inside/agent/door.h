/* The sudo door: a socket in the sandbox that every user may connect to.
 *
 * The agent itself only listens. Each connection is accepted, read and served by a child made for
 * it, so nothing that is sent there, descriptors with unpleasant habits included, ever reaches
 * pid 1. */
#pragma once

#include "inside/agent/loop.h"

#define DOOR_SESSIONS_MAX 64

struct agent;
struct agent_config;

struct door {
    struct agent *agent;
    struct loop_source listen; /* not watched while a child is about to accept, or all are taken */
    int fd;                    /* -1: closed */
    unsigned sessions;
    struct loop_timer retry;
};

void door_init(struct door *d, struct agent *a);
/* Before the first program starts. A sandbox without a door works, but for sudo. */
void door_open(struct door *d);
void door_done(struct door *d);

/* sudo_session.c: accepts one connection and serves it. Closes ready_fd once it has accepted. */
_Noreturn void sudo_session(int listen_fd, int ready_fd, const struct agent_config *config);
