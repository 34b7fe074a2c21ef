/* The least that an agent can be: lines in, lines out, in large reads and writes.
 *
 * A line that begins with {"method":"_sink" is counted and has no answer; {"method":"_count" is
 * answered with the number; {"method":"_source","n":N is answered with N lines of 1,000 bytes; all
 * others come back as they are. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 1000

static char in[1 << 20], out[1 << 20];
static size_t out_len;
static unsigned long sunk;

static void flush(void)
{
    for (size_t at = 0; at < out_len;) {
        ssize_t n = write(1, out + at, out_len - at);
        if (n < 0 && errno != EINTR)
            exit(1);
        at += n > 0 ? (size_t)n : 0;
    }
    out_len = 0;
}

static void put(const char *data, size_t len)
{
    if (out_len + len > sizeof(out))
        flush();
    memcpy(out + out_len, data, len);
    out_len += len;
}

static void source(unsigned long n)
{
    char line[LINE + 1];

    memset(line, 'x', sizeof(line));
    memcpy(line, "{\"text\":\"", 9);
    memcpy(line + LINE - 2, "\"}\n", 3);
    while (n--)
        put(line, sizeof(line));
}

static bool begins(const char *line, size_t len, const char *what)
{
    return len >= strlen(what) && memcmp(line, what, strlen(what)) == 0;
}

static void handle(const char *line, size_t len)
{
    if (begins(line, len, "{\"method\":\"_sink\"")) {
        sunk++;
    } else if (begins(line, len, "{\"method\":\"_source\",\"n\":")) {
        source(strtoul(line + strlen("{\"method\":\"_source\",\"n\":"), NULL, 10));
    } else if (begins(line, len, "{\"method\":\"_count\"")) {
        char answer[64];
        put(answer, (size_t)snprintf(answer, sizeof(answer), "{\"count\":%lu}\n", sunk));
        sunk = 0;
    } else {
        put(line, len);
    }
}

int main(void)
{
    size_t have = 0;

    for (;;) {
        ssize_t n = read(0, in + have, sizeof(in) - have);
        if (n <= 0)
            return 0;
        have += (size_t)n;
        size_t from = 0;
        for (char *end; (end = memchr(in + from, '\n', have - from)); from = (size_t)(end + 1 - in))
            handle(in + from, (size_t)(end + 1 - (in + from)));
        flush();
        if (from == 0 && have == sizeof(in))
            return 1;
        memmove(in, in + from, have - from);
        have -= from;
    }
}
