/* Checks whether a packet of a kernel may come now (kernels/README.md). A kernel is a program of
 * the sandbox's user, and its code can write to the control socket itself, so everything is
 * checked. This file does nothing but check.
 *
 *   Q comes first, once. Then any number of these:
 *
 *     R (T | J)* r        at any time. The result belongs to the cell that ran when R came, or to
 *                         nobody
 *     r                   without R it ends nothing: a kernel that was interrupted cannot know
 *                         whether it has sent r already
 *     F number [status]   during a cell, outside a result
 *     P                   once, at any time after the kernel was asked to let its threads rest */
#pragma once

#include "lib/base/base.h"

#define KERNEL_PACKET_MAX (64u * 1024)
#define KERNEL_KEY_MAX    32
#define KERNEL_RESULT_MAX (64u * 1024 * 1024) /* packets of one result, taken together */

struct kernel_packets {
    bool ready;     /* Q has come */
    bool running;   /* a cell runs */
    uint32_t cell;  /* number of the cell */
    bool resting;   /* the kernel owes P */
    bool in_result; /* R has come, and r has not */
    bool stray;     /* that result began when no cell ran */
    size_t result;  /* bytes of that result so far */
};

enum kernel_packet {
    PACKET_READY,  /* Q */
    PACKET_BEGIN,  /* R, the result of a cell begins */
    PACKET_RESULT, /* the rest of that result */
    PACKET_STRAY,  /* part of a result that belongs to nobody */
    PACKET_DONE,   /* F */
    PACKET_RESTED  /* P */
};

/* The cell with that number begins. */
void kernel_packets_run(struct kernel_packets *s, uint32_t cell);
/* The kernel has been asked to let its threads rest, and owes P. */
void kernel_packets_rest(struct kernel_packets *s);
/* Returns the kind of the packet, an enum kernel_packet, or -EPROTO if it must not come now, or
 * ever. */
int kernel_packets_check(struct kernel_packets *s, const void *packet, size_t len);
