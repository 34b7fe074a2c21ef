#include "front/e2b/filter.h"

#include <ctype.h>
#include <time.h>

#define PAIRS_MAX 100

/* Decodes %XX and '+' in place, as in a form. -1: an escape is invalid, or stands for NUL. */
static int form_decode(char *s)
{
    char *to = s;

    for (; *s; s++, to++) {
        if (*s == '+') {
            *to = ' ';
        } else if (*s == '%') {
            char digits[3] = {s[1], s[1] ? s[2] : '\0', '\0'};

            if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
                return -1;
            *to = (char)strtol(digits, NULL, 16);
            if (!*to)
                return -1;
            s += 2;
        } else {
            *to = *s;
        }
    }
    *to = '\0';
    return 0;
}

static int add_pair(json_t *to, char *pair, struct sg_error *e)
{
    char *value = strchr(pair, '=');

    if (!value || strchr(value + 1, '='))
        return err_invalid(e, "Error parsing metadata: invalid key value pair in query");
    *value++ = '\0';
    if (form_decode(pair) < 0 || form_decode(value) < 0)
        return err_invalid(e, "Error parsing metadata: invalid escape in a key or value");
    /* Fails for a text that is not UTF-8, which no metadata can be. */
    if (json_object_set_new(to, pair, json_string(value)) < 0)
        return err_invalid(e, "Error parsing metadata: a key or value is not UTF-8");
    if (json_object_size(to) > PAIRS_MAX)
        return err_invalid(e, "Error parsing metadata: more than 100 pairs");
    return 0;
}

int filter_metadata(const char *text, json_t **ret, struct sg_error *e)
{
    AUTO(free_p) char *copy = xstrdup(text);
    json_t *pairs = json_object();
    int r = form_decode(copy) < 0 ? err_invalid(e, "Error parsing metadata: invalid escape") : 0;

    for (char *p = copy, *next; r == 0 && p; p = next) {
        next = strchr(p, '&');
        if (next)
            *next++ = '\0';
        r = add_pair(pairs, p, e);
    }
    if (r < 0)
        json_decref(pairs);
    else
        *ret = pairs;
    return r;
}

bool filter_matches(const json_t *wanted, const json_t *metadata)
{
    json_t *walk = (json_t *)(uintptr_t)wanted;

    for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
        const json_t *have = json_object_get(metadata, json_object_iter_key(at));

        if (!json_is_string(have) || !json_equal(have, json_object_iter_value(at)))
            return false;
    }
    return true;
}

int filter_states(const char *text, bool *ret_running, bool *ret_paused, struct sg_error *e)
{
    bool running = false, paused = false;

    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");

        if (len == 7 && strncmp(p, "running", len) == 0)
            running = true;
        else if (len == 6 && strncmp(p, "paused", len) == 0)
            paused = true;
        else
            return err_invalid(
                e, "Invalid state parameter: \"%.40s\" is neither running nor paused", text);
        p += len;
        if (!*p)
            break;
    }
    *ret_running = running;
    *ret_paused = paused;
    return 0;
}

/* Reads a fraction as microseconds; moves *p behind it. */
static int64_t take_fraction(const char **p)
{
    int64_t us = 0, unit = 100000;

    if (**p != '.' && **p != ',')
        return 0;
    for (++*p; isdigit((unsigned char)**p); ++*p, unit /= 10)
        us += (**p - '0') * unit;
    return us;
}

/* Reads "Z" or "+02:00" as seconds; nothing may follow. */
static int take_offset(const char *p, int64_t *ret)
{
    int hours, minutes, used = 0;

    if ((p[0] == 'Z' || p[0] == 'z') && !p[1]) {
        *ret = 0;
        return 0;
    }
    if ((p[0] != '+' && p[0] != '-' && p[0] != ' ') ||
        sscanf(p + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5 || p[6] ||
        hours > 23 || minutes > 59 || hours < 0 || minutes < 0)
        return -EINVAL;
    *ret = (p[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return 0;
}

int filter_time(const char *text, int64_t *ret_us, struct sg_error *e)
{
    struct tm tm = {0};
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t fraction = p ? take_fraction(&p) : 0, offset;

    if (!p || tm.tm_year > 9999 - 1900 || take_offset(p, &offset) < 0)
        return err_invalid(e, "Invalid startedAfter parameter: not a time such as "
                              "2026-01-31T12:00:00Z");
    *ret_us = ((int64_t)timegm(&tm) - offset) * 1000000 + fraction;
    return 0;
}
