/* Numbers of traces and spans. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fast and not secret; seeded by the kernel once. */
uint64_t trace_random(void);
/* Never all zeros. */
void trace_random_bytes(uint8_t *out, size_t n);
/* 2 * n digits, without a NUL. */
void trace_hex(const uint8_t *bytes, size_t n, char *out);
