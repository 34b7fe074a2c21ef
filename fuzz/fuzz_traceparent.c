/* What a client says its place in a trace is: nonsense is none, and what is taken is passed on in a
 * form that is taken again. */
#include <assert.h>
#include <string.h>

#include "front/telemetry/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    /* Of its own size, so that a byte read beyond its end is found. */
    AUTO(free_p) char *text = malloc(len + 1);
    char out[TRACEPARENT_LEN + 1];
    struct trace_ref r, again;

    memcpy(text, data, len);
    text[len] = '\0';
    if (!trace_parse(text, &r)) {
        assert(!r.set);
        return 0;
    }
    assert(r.set && strlen(text) >= TRACEPARENT_LEN && strncmp(text, "ff", 2) != 0);
    trace_format(&r, out);
    assert(strlen(out) == TRACEPARENT_LEN && strncmp(out + 3, text + 3, 49) == 0);
    assert(trace_parse(out, &again) && memcmp(&r, &again, sizeof(r)) == 0);
    return 0;
}
