#include "cli/client/usage_text.h"

#include "lib/text/parse.h"
#include "cli/client/jr.h"

char *usage_number(double value, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.*f", value < 10 ? 2 : value < 1000 ? 1 : 0, value);
    return buf;
}

char *usage_cents(const char *amount, char *buf, size_t cap)
{
    size_t whole = strspn(amount, "0123456789");
    const char *fraction = amount[whole] == '.' ? amount + whole + 1 : "";
    uint64_t cents = 0;

    for (size_t i = 0; i < whole && i < 16; i++)
        cents = 10 * cents + (uint64_t)(amount[i] - '0');
    for (size_t i = 0; i < 2; i++) {
        bool digit = *fraction >= '0' && *fraction <= '9';
        cents = 10 * cents + (uint64_t)(digit ? *fraction++ - '0' : 0);
    }
    cents += *fraction >= '5' && *fraction <= '9';
    if (cents == 0 && strpbrk(amount, "123456789"))
        snprintf(buf, cap, "<0.01");
    else
        snprintf(buf, cap, "%llu.%02llu", (unsigned long long)(cents / 100),
                 (unsigned long long)(cents % 100));
    return buf;
}

static void add_count(struct strbuf *out, uint64_t n, const char *one, const char *many)
{
    strbuf_addf(out, ", %llu %s", (unsigned long long)n, n == 1 ? one : many);
}

void usage_sentence(struct strbuf *out, const json_t *u)
{
    char a[64], b[64], c[64], d[64];

    strbuf_addf(out, "%s s of processor, %s GiB s of memory, %s in, %s out",
                usage_number(jr_number(u, "cpuSeconds"), a, sizeof(a)),
                usage_number(jr_number(u, "memoryGibSeconds"), b, sizeof(b)),
                format_size(jr_count(u, "bytesIn"), c, sizeof(c)),
                format_size(jr_count(u, "bytesOut"), d, sizeof(d)));
    add_count(out, jr_count(u, "executions"), "execution", "executions");
    add_count(out, jr_count(u, "sandboxes"), "sandbox", "sandboxes");
}
