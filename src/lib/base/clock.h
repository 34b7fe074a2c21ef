/* Time: a clock that neither stops in suspend nor follows the wall clock, and the wall clock
 * itself. */
#pragma once

#include <stdint.h>

uint64_t clock_ns(void); /* CLOCK_BOOTTIME */
/* The wall clock, for people and for other machines: milliseconds since 1970. */
int64_t clock_wall_ms(void);
#define CLOCK_TEXT_LEN 25
/* "2026-11-15T12:00:00.123Z". A time whose year does not have four digits becomes 1970. */
void clock_text(int64_t ms, char ret[CLOCK_TEXT_LEN]);
/* Milliseconds from now until the deadline (of clock_ns), for poll(2): rounded up, from 0 to
 * INT_MAX. */
int clock_poll_ms(uint64_t deadline_ns);
