#include "lib/log/log_rate.h"

#define SECOND_NS 1000000000ull

static void fill(struct log_rate *r, unsigned a_second, uint64_t now_ns)
{
    double most = (double)a_second * LOG_BURST;
    double more = r->begun ? (double)(now_ns - r->filled_ns) / SECOND_NS * a_second : most;

    for (size_t i = 0; i < ARRAY_SIZE(r->tokens); i++) {
        r->tokens[i] += more;
        if (r->tokens[i] > most)
            r->tokens[i] = most;
    }
    r->begun = true;
    r->filled_ns = now_ns;
}

bool log_rate_take(struct log_rate *r, unsigned a_second, bool is_error, uint64_t now_ns)
{
    double *tokens = &r->tokens[is_error];

    if (a_second == 0)
        return true;
    fill(r, a_second, now_ns);
    if (*tokens < 1) {
        r->untold++;
        return false;
    }
    *tokens -= 1;
    return true;
}

uint64_t log_rate_due(struct log_rate *r, uint64_t now_ns)
{
    uint64_t n = r->untold;

    if (n == 0 || (r->told_ns && now_ns - r->told_ns < SECOND_NS))
        return 0;
    r->untold = 0;
    r->told_ns = now_ns;
    return n;
}
