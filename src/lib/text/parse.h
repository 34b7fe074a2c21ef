/* Text to numbers, strictly: the whole string must be consumed, no sign, no white space, no
 * overflow. The error names the input and shows what is accepted. */
#pragma once

#include "lib/base/err.h"

/* Decimal only. `what` names the thing in the error ("--pids"). */
int parse_u64(const char *what, const char *s, uint64_t min, uint64_t max, uint64_t *ret,
              struct sg_error *e);
/* "512K", "64M", "2G", "1T", optionally with iB or B ("64MiB"); a plain number is bytes. Powers of
 * 1024. */
int parse_size(const char *what, const char *s, uint64_t *ret_bytes, struct sg_error *e);
/* "500ms", "30s", "5m", "1h", "1d"; a plain number is seconds; fractions such as "1.5s" are fine.
 */
int parse_duration_ms(const char *what, const char *s, uint64_t *ret_ms, struct sg_error *e);
/* "1", "0.5", "2.25" to thousandths, rounded down; at most 3 decimals matter. */
int parse_milli(const char *what, const char *s, uint32_t *ret, struct sg_error *e);

/* The value of a hexadecimal digit; -1: c is none. */
static inline int parse_hex(int c)
{
    int lower = c | 0x20;

    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* "512 MiB", "1.5 GiB", "17 B"; "350 ms", "1.2 s", "5 min": for people. Return buf. */
char *format_size(uint64_t bytes, char *buf, size_t cap);
char *format_duration_us(uint64_t us, char *buf, size_t cap);
