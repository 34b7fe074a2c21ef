#include "lib/command/when.h"

#include <time.h>

#define MS_PER_S  1000
#define MIN_S     60
#define HOUR_S    3600
#define DAY_S     86400
#define UNITS_MIN 2 /* the smaller unit up to here: "90 min" says more than "1 h" */

/* Takes n digits at *s as a number, or returns -1. */
static int take_digits(const char **s, unsigned n)
{
    int v = 0;

    for (; n > 0; n--, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        v = v * 10 + (**s - '0');
    }
    return v;
}

static bool take_char(const char **s, const char *any)
{
    if (!**s || !strchr(any, **s))
        return false;
    (*s)++;
    return true;
}

static int take_fraction_ms(const char **s, int *ret)
{
    int ms = 0, place = MS_PER_S / 10;

    *ret = 0;
    if (!take_char(s, "."))
        return 0;
    if (**s < '0' || **s > '9')
        return -EINVAL;
    for (; **s >= '0' && **s <= '9'; (*s)++, place /= 10)
        ms += (**s - '0') * place;
    *ret = ms;
    return 0;
}

/* Takes a time zone, as seconds east of Greenwich. */
static int take_zone(const char **s, int *ret)
{
    *ret = 0;
    if (take_char(s, "Zz"))
        return 0;
    int sign = **s == '-' ? -1 : 1;
    if (!take_char(s, "+-"))
        return -EINVAL;
    int hours = take_digits(s, 2);
    if (hours < 0 || !take_char(s, ":"))
        return -EINVAL;
    int minutes = take_digits(s, 2);
    if (minutes < 0)
        return -EINVAL;
    *ret = sign * (hours * HOUR_S + minutes * MIN_S);
    return 0;
}

int when_parse_ms(const char *s, int64_t *ret)
{
    struct tm tm = {0};
    int year = take_digits(&s, 4), ms, zone;

    if (year < 0 || !take_char(&s, "-") || (tm.tm_mon = take_digits(&s, 2) - 1) < 0 ||
        !take_char(&s, "-") || (tm.tm_mday = take_digits(&s, 2)) < 1 || !take_char(&s, "Tt ") ||
        (tm.tm_hour = take_digits(&s, 2)) < 0 || !take_char(&s, ":") ||
        (tm.tm_min = take_digits(&s, 2)) < 0 || !take_char(&s, ":") ||
        (tm.tm_sec = take_digits(&s, 2)) < 0)
        return -EINVAL;
    if (tm.tm_mon > 11 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return -EINVAL;
    if (take_fraction_ms(&s, &ms) < 0 || take_zone(&s, &zone) < 0 || *s)
        return -EINVAL;
    tm.tm_year = year - 1900;
    *ret = ((int64_t)timegm(&tm) - zone) * MS_PER_S + ms;
    return 0;
}

char *when_relative(int64_t then_ms, int64_t now_ms, char *buf, size_t cap)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"s", 1}, {"min", MIN_S}, {"h", HOUR_S}, {"d", DAY_S}};
    int64_t away = (then_ms - now_ms) / MS_PER_S, distance = away < 0 ? -away : away;
    size_t i = ARRAY_SIZE(units) - 1;

    while (i > 0 && distance < units[i].seconds * (i > 1 ? UNITS_MIN : 1))
        i--;
    if (distance == 0)
        snprintf(buf, cap, "now");
    else
        snprintf(buf, cap, "%s%lld %s%s", away > 0 ? "in " : "",
                 (long long)((distance + units[i].seconds / 2) / units[i].seconds), units[i].name,
                 away < 0 ? " ago" : "");
    return buf;
}

char *when_local(int64_t then_ms, char *buf, size_t cap)
{
    time_t seconds = (time_t)(then_ms / MS_PER_S);
    char text[32] = "";
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(buf, cap, "%s.%03d", text, (int)(then_ms % MS_PER_S));
    return buf;
}
