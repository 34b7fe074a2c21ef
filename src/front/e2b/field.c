#include "front/e2b/field.h"

#define HOUR_MS (3600ull * 1000)

uint64_t field_timeout(struct fields *in, int32_t min_s, uint32_t default_s, uint64_t max_ms)
{
    uint64_t fallback = default_s * 1000ull;
    int32_t seconds = field_int(in, "timeout", min_s);

    if (!field_get(in, "timeout"))
        return fallback < max_ms ? fallback : max_ms;
    if (seconds < min_s)
        fields_invalid(in, "Timeout must be greater than %d", min_s - 1);
    else if ((uint64_t)seconds * 1000 > max_ms && max_ms % HOUR_MS == 0)
        fields_invalid(in, "Timeout cannot be greater than %llu hours",
                       (unsigned long long)(max_ms / HOUR_MS));
    else if ((uint64_t)seconds * 1000 > max_ms)
        fields_invalid(in, "Timeout cannot be greater than %llu seconds",
                       (unsigned long long)(max_ms / 1000));
    return (uint64_t)seconds * 1000;
}
