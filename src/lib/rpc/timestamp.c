/* Points in time as RFC 3339 text, in the range that protobuf allows: the years 1 to 9999. */
#include <time.h>

#include "lib/rpc/codec.h"

#define SECONDS_MIN (-62135596800)
#define SECONDS_MAX 253402300799

void timestamp_format(int64_t seconds, int32_t nanos, char ret[TIMESTAMP_TEXT])
{
    struct tm tm;
    char fraction[12] = "";

    if (seconds < SECONDS_MIN)
        seconds = SECONDS_MIN;
    else if (seconds > SECONDS_MAX)
        seconds = SECONDS_MAX;
    gmtime_r(&(time_t){seconds}, &tm);
    /* as many digits as are needed, in threes */
    if (nanos % 1000 != 0)
        snprintf(fraction, sizeof(fraction), ".%09d", nanos);
    else if (nanos % 1000000 != 0)
        snprintf(fraction, sizeof(fraction), ".%06d", nanos / 1000);
    else if (nanos != 0)
        snprintf(fraction, sizeof(fraction), ".%03d", nanos / 1000000);
    snprintf(ret, TIMESTAMP_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
}

/* Exactly n digits, at most max, then `after`. */
static bool number(const char **p, int n, int max, char after, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        v = v * 10 + (**p - '0');
    }
    if (after && *(*p)++ != after)
        return false;
    *ret = v;
    return v <= max;
}

static bool fraction(const char **p, int32_t *ret)
{
    int32_t v = 0, scale = 100000000;

    if (**p != '.')
        return true;
    for ((*p)++; **p >= '0' && **p <= '9'; (*p)++, scale /= 10) {
        if (scale == 0)
            return false;
        v += (**p - '0') * scale;
    }
    *ret = v;
    return scale < 100000000; /* a dot needs a digit after it */
}

static bool offset(const char **p, int *ret_seconds)
{
    int hours, minutes, sign = **p == '-' ? -1 : 1;

    if (**p == 'Z') {
        (*p)++;
        return true;
    }
    if (**p != '+' && **p != '-')
        return false;
    (*p)++;
    if (!number(p, 2, 23, ':', &hours) || !number(p, 2, 59, '\0', &minutes))
        return false;
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

int timestamp_parse(const char *text, int64_t *ret_seconds, int32_t *ret_nanos)
{
    struct tm tm = {0};
    int32_t nanos = 0;
    int east = 0;
    bool ok = number(&text, 4, 9999, '-', &tm.tm_year) && number(&text, 2, 12, '-', &tm.tm_mon) &&
              number(&text, 2, 31, 'T', &tm.tm_mday) && number(&text, 2, 23, ':', &tm.tm_hour) &&
              number(&text, 2, 59, ':', &tm.tm_min) && number(&text, 2, 59, '\0', &tm.tm_sec) &&
              fraction(&text, &nanos) && offset(&text, &east) && *text == '\0';

    if (!ok || tm.tm_year < 1 || tm.tm_mon < 1 || tm.tm_mday < 1)
        return -EINVAL;
    int day = tm.tm_mday;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = timegm(&tm);
    if (tm.tm_mday != day) /* no such day, as the 31st of April: timegm has moved it on */
        return -EINVAL;
    seconds -= east;
    if (seconds < SECONDS_MIN || seconds > SECONDS_MAX)
        return -EINVAL;
    *ret_seconds = seconds;
    *ret_nanos = nanos;
    return 0;
}
