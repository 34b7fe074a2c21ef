#include "lib/base/hidden.h"

#include <string.h>

bool hidden_set(struct hidden *s, const char *bytes, size_t len)
{
    if (len >= sizeof(s->bytes))
        return false;
    hidden_wipe(s);
    memcpy(s->bytes, bytes, len);
    return true;
}

bool hidden_empty(const struct hidden *s)
{
    return s->bytes[0] == '\0';
}

bool hidden_equals(const struct hidden *s, const char *bytes, size_t len)
{
    unsigned char differ = len >= sizeof(s->bytes);

    for (size_t i = 0; i < sizeof(s->bytes); i++)
        differ |= (unsigned char)(s->bytes[i] ^ (i < len ? bytes[i] : 0));
    return differ == 0;
}

const char *hidden_reveal(const struct hidden *s)
{
    return s->bytes;
}

void hidden_wipe(struct hidden *s)
{
    explicit_bzero(s->bytes, sizeof(s->bytes));
}
