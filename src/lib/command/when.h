/* Points in time, as servers write them and as people read them. */
#pragma once

#include "lib/base/base.h"

/* "2026-03-01T12:30:00.25Z" or with an offset, "+01:00", to milliseconds since 1970. -EINVAL if it
 * is no such time. */
int when_parse_ms(const char *text, int64_t *ret);
/* "now", "12 s ago", "in 3 min", "5 d ago". Returns buf. */
char *when_relative(int64_t then_ms, int64_t now_ms, char *buf, size_t cap);
/* "2026-03-01 13:30:00.250", in the local time zone. Returns buf. */
char *when_local(int64_t then_ms, char *buf, size_t cap);
