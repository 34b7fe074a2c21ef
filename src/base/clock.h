/* Time that neither stops in suspend nor follows the wall clock. */
#pragma once

#include <stdint.h>

uint64_t clock_ns(void); /* CLOCK_BOOTTIME */
/* For people and for other machines: milliseconds since 1970. */
int64_t clock_wall_ms(void);
/* Milliseconds from now until the deadline (clock_ns based) for poll(2): rounded up, >= 0, <=
 * INT_MAX. */
int clock_poll_ms(uint64_t deadline_ns);
