/* What the front and the exporter say to each other, one packet each. Both are one program, so
 * numbers are the machine's own; each side checks what it gets, and ends the talk over nonsense.
 *
 *   front -> exporter   struct exporter_ask, then n_texts texts, each with its NUL: the URL, the
 * type of the content, and names and values of headers; a sealed memfd goes along exporter -> front
 * struct exporter_told */
#pragma once

#include "lib/base/err.h"

#define EXPORTER_MAGIC      0x73676831u /* "sgh1" */
#define EXPORTER_URL_MAX    2048
#define EXPORTER_NAME_MAX   128
#define EXPORTER_PACKET_MAX (16u * 1024)
#define EXPORTER_TEXTS_MIN  2

struct exporter_ask {
    uint32_t magic, n_texts;
    uint64_t seq;
    uint64_t len; /* of the body */
};

struct exporter_told {
    uint32_t magic;
    int32_t status;
    uint64_t seq;
    uint64_t retry_after_ms;
};

/* What runs in the exporter's process: serves a front, then the next. control: the warden's socket
 * (wire/worker.h), or -1, and then it ends with the front whose socket `front` is; else that is
 * -1. confine: what it takes from itself, first thing. */
_Noreturn void exporter_process(int control, int front, int (*confine)(struct sg_error *e));
