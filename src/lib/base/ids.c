#include "lib/base/ids.h"

#include <string.h>
#include <sys/random.h>

#include "lib/base/base.h"

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";

#define SYMBOLS (sizeof(alphabet) - 1)
/* Bytes from here on are thrown away, since they would make some characters likelier than
 * others. */
#define FAIR (256 - 256 % SYMBOLS)

static void random_bytes(unsigned char *buf, size_t len)
{
    while (len > 0) {
        ssize_t n = getrandom(buf, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        /* A name that can be guessed is worse than none. */
        if (n <= 0)
            abort();
        buf += n;
        len -= (size_t)n;
    }
}

void id_random(char ret[ID_LEN + 1])
{
    unsigned char pool[2 * ID_LEN];
    size_t made = 0;

    while (made < ID_LEN) {
        random_bytes(pool, sizeof(pool));
        for (size_t i = 0; i < sizeof(pool) && made < ID_LEN; i++)
            if (pool[i] < FAIR)
                ret[made++] = alphabet[pool[i] % SYMBOLS];
    }
    ret[ID_LEN] = '\0';
}

void id_from_bytes(const unsigned char bytes[ID_LEN], char ret[ID_LEN + 1])
{
    for (size_t i = 0; i < ID_LEN; i++)
        ret[i] = alphabet[bytes[i] % SYMBOLS];
    ret[ID_LEN] = '\0';
}

bool id_valid(const char *s)
{
    return strnlen(s, ID_LEN + 1) == ID_LEN && strspn(s, alphabet) == ID_LEN;
}

bool id_valid_on(const char *s)
{
    char id[ID_LEN + 1] = "";

    memcpy(id, s, strnlen(s, ID_LEN));
    return id_valid(id) && (s[ID_LEN] == '\0' || (s[ID_LEN] == '.' && id_valid(s + ID_LEN + 1)));
}
