/* The ids of traces and spans. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A random number: fast and not secret; the kernel seeds the generator once. */
uint64_t trace_random(void);
/* Random bytes, never all zeros. */
void trace_random_bytes(uint8_t *out, size_t n);
/* Writes 2 * n hexadecimal digits, without a NUL. */
void trace_hex(const uint8_t *bytes, size_t n, char *out);
