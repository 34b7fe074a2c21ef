#include "client/usage_text.h"

#include "base/parse.h"
#include "client/jr.h"

char *usage_number(double value, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.*f", value < 10 ? 2 : value < 1000 ? 1 : 0, value);
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
