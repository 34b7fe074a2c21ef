/* What the front and the herald say to each other, one packet each. Both are one program, so
 * numbers are the machine's own; each side checks what it gets, and ends the talk over nonsense.
 *
 *   front -> herald   struct herald_ask, then n_texts texts, each with its NUL: the URL, the type
 * of the content, and names and values of headers; a sealed memfd goes along herald -> front struct
 * herald_told */
#pragma once

#include "lib/base/err.h"

#define HERALD_MAGIC      0x73676831u /* "sgh1" */
#define HERALD_URL_MAX    2048
#define HERALD_NAME_MAX   128
#define HERALD_PACKET_MAX (16u * 1024)
#define HERALD_TEXTS_MIN  2

struct herald_ask {
    uint32_t magic, n_texts;
    uint64_t seq;
    uint64_t len; /* of the body */
};

struct herald_told {
    uint32_t magic;
    int32_t status;
    uint64_t seq;
    uint64_t retry_after_ms;
};

/* What runs in the herald's process: serves a front, then the next. control: the warden's socket
 * (wire/worker.h), or -1, and then it ends with the front whose socket `front` is; else that is
 * -1. confine: what it takes from itself, first thing. */
_Noreturn void herald_process(int control, int front, int (*confine)(struct sg_error *e));
