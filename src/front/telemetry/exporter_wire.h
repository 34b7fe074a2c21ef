/* Messages between the front and the exporter, one packet each. Both sides are one program, so
 * numbers are in the machine's byte order. Each side checks what it receives, and hangs up on
 * nonsense.
 *
 *   front -> exporter   struct exporter_ask, then n_texts texts, each with its NUL: the URL, the
 *                       content type, and names and values of headers; a sealed memfd goes along
 *   exporter -> front   struct exporter_told */
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
    uint32_t judged, unused;
};

struct exporter_told {
    uint32_t magic;
    int32_t status;
    uint64_t seq;
    uint64_t retry_after_ms;
};

/* The code that runs in the exporter's process: serves a front, then the next. control: the
 * warden's socket (wire/worker.h), with `front` -1. Or control is -1, and `front` is the socket of
 * the only front to serve: the process ends with it. confine: gives up the process's rights, first
 * of all. */
_Noreturn void exporter_process(int control, int front, int (*confine)(struct sg_error *e));
