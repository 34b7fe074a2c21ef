#include "pull/challenge.h"

#include <string.h>
#include <strings.h>

struct reader {
    const char *at, *end;
};

static bool is_token(char c)
{
    static const char more[] = "!#$%&'*+-.^_`|~";

    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr(more, c));
}

static void skip_blanks(struct reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t'))
        in->at++;
}

static void skip_commas(struct reader *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t' || *in->at == ','))
        in->at++;
}

/* The token at the current place; its length is 0 if there is none. */
static size_t take_token(struct reader *in, const char **ret)
{
    *ret = in->at;
    while (in->at < in->end && is_token(*in->at))
        in->at++;
    return (size_t)(in->at - *ret);
}

/* Reads a value, quoted or not, of which `value` takes what fits with its NUL. False: there is
 * none, or it has no end. *ret_whole: all of it fitted, and no control character was in it. */
static bool take_value(struct reader *in, char *value, size_t cap, bool *ret_whole)
{
    bool quoted = in->at < in->end && *in->at == '"';
    size_t n = 0;

    *ret_whole = true;
    for (in->at += quoted; in->at < in->end; in->at++) {
        char c = *in->at;

        if (quoted ? c == '"' : !is_token(c))
            break;
        if (quoted && c == '\\' && ++in->at < in->end)
            c = *in->at;
        if (n + 1 < cap && (unsigned char)c >= 0x20 && c != 0x7f)
            value[n++] = c;
        else
            *ret_whole = false;
    }
    value[n] = '\0';
    if (!quoted)
        return n > 0;
    return in->at < in->end && in->at++;
}

static void keep(char *to, size_t cap, const char *value)
{
    if (to[0] == '\0' && strlen(value) < cap)
        memcpy(to, value, strlen(value) + 1);
}

static void take_parameter(struct challenge *c, const char *name, size_t len, const char *value)
{
    if (len == 5 && strncasecmp(name, "realm", len) == 0)
        keep(c->realm, sizeof(c->realm), value);
    else if (len == 7 && strncasecmp(name, "service", len) == 0)
        keep(c->service, sizeof(c->service), value);
    else if (len == 5 && strncasecmp(name, "error", len) == 0)
        keep(c->error, sizeof(c->error), value);
}

/* Reads "name=value, name=value", up to a token that has no "=" behind it: the next scheme. False:
 * a mistake. */
static bool take_parameters(struct reader *in, struct challenge *c)
{
    for (;;) {
        char value[sizeof(c->realm)];
        struct reader ahead = *in;
        const char *name;
        bool whole;

        skip_commas(&ahead);
        size_t len = take_token(&ahead, &name);
        skip_blanks(&ahead);
        if (len == 0 || ahead.at == ahead.end || *ahead.at != '=')
            return true;
        ahead.at++;
        skip_blanks(&ahead);
        if (!take_value(&ahead, value, sizeof(value), &whole))
            return false;
        if (whole)
            take_parameter(c, name, len, value);
        *in = ahead;
    }
}

void challenge_parse(const char *text, size_t len, struct challenge *ret)
{
    struct reader in = {.at = text, .end = text + len};
    struct challenge best = {0};
    bool good = true;

    while (good) {
        struct challenge c = {0};
        const char *scheme;

        skip_commas(&in);
        size_t n = take_token(&in, &scheme);
        if (n == 0)
            break;
        if (n == 6 && strncasecmp(scheme, "Bearer", n) == 0)
            c.scheme = CHALLENGE_BEARER;
        else if (n == 5 && strncasecmp(scheme, "Basic", n) == 0)
            c.scheme = CHALLENGE_BASIC;
        good = take_parameters(&in, &c);
        if (c.scheme == CHALLENGE_BEARER && !c.realm[0])
            c.scheme = CHALLENGE_NONE;
        if (c.scheme > best.scheme)
            best = c;
    }
    *ret = best;
}
