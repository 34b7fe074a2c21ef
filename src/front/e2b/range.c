#include "front/e2b/range.h"

#include "lib/text/parse.h"

/* Reads a time in whole seconds from the query, and adds `more_ms`. */
static int64_t parse_seconds(struct e2b_req *q, const char *name, int64_t fallback, int more_ms)
{
    const char *text = http_query_get(q->http, name);
    uint64_t seconds = 0;

    if (!text)
        return fallback;
    if (parse_u64(name, text, 0, INT64_MAX / 2000, &seconds, NULL) < 0)
        fields_invalid(&q->in, "Invalid %s: it must be a time in seconds since 1970", name);
    return (int64_t)seconds * 1000 + more_ms;
}

struct range range_of_request(struct e2b_req *q, int64_t from_ms, int64_t to_ms)
{
    struct range range;

    range.from_ms = parse_seconds(q, "start", from_ms, 0);
    range.to_ms = parse_seconds(q, "end", to_ms, 999); /* it includes its whole second */
    if (range.from_ms > range.to_ms)
        fields_invalid(&q->in, "Invalid range: start is after end");
    return range;
}
