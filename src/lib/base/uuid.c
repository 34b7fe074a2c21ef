#include "lib/base/uuid.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/base.h"

static void write_uuid(const uint8_t bytes[16], unsigned version, char ret[UUID_LEN + 1])
{
    uint8_t b[16];

    memcpy(b, bytes, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(ret, UUID_LEN + 1,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
}

void uuid_random(char ret[UUID_LEN + 1])
{
    uint8_t b[16];

    /* getrandom never returns less for this size. A name that can be guessed is worse than none. */
    if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
        abort();
    write_uuid(b, 4, ret);
}

void uuid_from_bytes(const uint8_t bytes[16], char ret[UUID_LEN + 1])
{
    write_uuid(bytes, 8, ret);
}

bool uuid_valid(const char *s)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    for (size_t i = 0; i < UUID_LEN; i++)
        if (form[i] == '-' ? s[i] != '-' : !s[i] || !strchr("0123456789abcdef", s[i]))
            return false;
    return s[UUID_LEN] == '\0';
}
