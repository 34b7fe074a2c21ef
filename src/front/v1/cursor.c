#include "front/v1/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIME_LEN (CURSOR_LEN - ID_LEN)

void cursor_make(const struct ctx_row *row, char ret[CURSOR_LEN + 1])
{
    snprintf(ret, CURSOR_LEN + 1, "%016" PRIx64 "%s", (uint64_t)row->created_ms, row->id);
}

int cursor_read(const char *text, struct cursor *ret)
{
    struct cursor c = {0};

    /* The first digit is below 8, so that the time is not negative. */
    if (strnlen(text, CURSOR_LEN + 1) != CURSOR_LEN ||
        strspn(text, "0123456789abcdef") < TIME_LEN || text[0] > '7' || !id_valid(text + TIME_LEN))
        return -EINVAL;
    for (size_t i = 0; i < TIME_LEN; i++) {
        int digit = text[i] <= '9' ? text[i] - '0' : text[i] - 'a' + 10;

        c.at_ms = c.at_ms << 4 | digit;
    }
    memcpy(c.id, text + TIME_LEN, ID_LEN);
    *ret = c;
    return 0;
}
