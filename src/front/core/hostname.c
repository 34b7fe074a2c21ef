#include "front/core/hostname.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool hostname_valid(const char *s)
{
    size_t len = strlen(s), label = 0;

    if (len == 0 || len > HOSTNAME_MAX)
        return false;
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c == '.' || c == '\0') {
            if (label == 0 || label > 63 || s[i - 1] == '-' || s[i - label] == '-')
                return false;
            label = 0;
        } else if ((c < 0x80 && isalnum(c)) || c == '-' || c == '_') {
            label++;
        } else {
            return false;
        }
    }
    return true;
}

bool hostname_pattern_valid(const char *s)
{
    return hostname_valid(strncmp(s, "*.", 2) == 0 ? s + 2 : s);
}

bool hostname_covers(const char *pattern, const char *name)
{
    size_t suffix = strlen(pattern) - 1, len = strlen(name);

    if (strcasecmp(pattern, name) == 0)
        return true;
    return strncmp(pattern, "*.", 2) == 0 && len > suffix &&
           strcasecmp(name + len - suffix, pattern + 1) == 0;
}
