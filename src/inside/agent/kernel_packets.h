/* Whether a packet of a kernel is one that may come now (kernels/README.md). A kernel is a program
 * of the sandbox's user, whose code can write to the control socket itself: everything is checked,
 * and nothing is done here but checking.
 *
 *   Q, then any number of:   R (T | J)* r   at any time: the result of a cell if one ran when it
 *                                           began, else nobody's
 *                            r              with nothing begun it ends nothing: a kernel that was
 *                                           interrupted cannot know whether it has said so
 *                            F number [status]   in a cell, outside of a result
 *                            P   once, at any time after it was asked to let its threads rest */
#pragma once

#include "lib/base/base.h"

#define KERNEL_PACKET_MAX (64u * 1024)
#define KERNEL_KEY_MAX    32
#define KERNEL_RESULT_MAX (64u * 1024 * 1024) /* packets of one result, taken together */

struct kernel_packets {
    bool ready;     /* Q has come */
    bool running;   /* a cell */
    uint32_t cell;  /* its number */
    bool resting;   /* P is owed */
    bool in_result; /* since R */
    bool stray;     /* ... which began when no cell ran */
    size_t result;  /* bytes of it */
};

enum kernel_packet {
    PACKET_READY,  /* Q */
    PACKET_BEGIN,  /* R, of a cell */
    PACKET_RESULT, /* what follows it */
    PACKET_STRAY,  /* part of nobody's result */
    PACKET_DONE,   /* F */
    PACKET_RESTED  /* P */
};

/* The cell of that number begins. */
void kernel_packets_run(struct kernel_packets *s, uint32_t cell);
/* It is asked for P. */
void kernel_packets_rest(struct kernel_packets *s);
/* What the packet is, an enum kernel_packet, or -EPROTO: it must not come now, or ever. */
int kernel_packets_check(struct kernel_packets *s, const void *packet, size_t len);
