#include "front/v1/days.h"

#include <string.h>
#include <time.h>

#define DAY_S        86400
#define DAYS_DEFAULT 30

static void write_day(int64_t day, char ret[CTX_DAY_LEN + 1])
{
    time_t seconds = (time_t)day * DAY_S;
    struct tm tm = {0};

    gmtime_r(&seconds, &tm);
    if (strftime(ret, CTX_DAY_LEN + 1, "%Y-%m-%d", &tm) == 0)
        ret[0] = '\0'; /* the year has more than four digits */
}

/* The number that the digits at p stand for. */
static int number(const char *p, size_t len)
{
    int n = 0;

    for (size_t i = 0; i < len; i++)
        n = 10 * n + (p[i] - '0');
    return n;
}

/* Reads a day as days since 1970. False for a day that the calendar does not have, such as February
 * 30: writing it again gives another day. */
static bool read_day(const char *text, int64_t *ret)
{
    char again[CTX_DAY_LEN + 1];

    if (strnlen(text, CTX_DAY_LEN + 1) != CTX_DAY_LEN || strspn(text, "0123456789") != 4 ||
        strspn(text + 5, "0123456789") != 2 || strspn(text + 8, "0123456789") != 2 ||
        number(text, 4) < 1970)
        return false;
    struct tm tm = {.tm_year = number(text, 4) - 1900,
                    .tm_mon = number(text + 5, 2) - 1,
                    .tm_mday = number(text + 8, 2)};
    int64_t day = timegm(&tm) / DAY_S;
    write_day(day, again);
    *ret = day;
    return strcmp(again, text) == 0;
}

/* *ret stays as it is if `text` is NULL. */
static int parse_day(const char *what, const char *text, int64_t *ret, struct sg_error *e)
{
    if (!text || read_day(text, ret))
        return 0;
    return err_invalid(e, "Invalid %s \"%.20s\": use a day such as 2026-11-15", what, text);
}

int days_parse(const char *from, const char *to, int64_t now_ms, struct days *ret,
               struct sg_error *e)
{
    int64_t last = now_ms / 1000 / DAY_S, first;
    int r = parse_day("to", to, &last, e);

    if (r < 0)
        return r;
    first = last >= DAYS_DEFAULT ? last - DAYS_DEFAULT + 1 : 0;
    r = parse_day("from", from, &first, e);
    if (r < 0)
        return r;
    if (first > last)
        return err_invalid(e, "Invalid range: 'from' is later than 'to'");
    if (last - first >= CTX_DAYS_MAX)
        return err_invalid(e, "Invalid range: at most %d days", CTX_DAYS_MAX);
    write_day(first, ret->from);
    write_day(last, ret->to);
    return 0;
}
