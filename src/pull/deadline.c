#include "pull/deadline.h"

#include <poll.h>

#include "lib/base/clock.h"
#include "pull/fault.h"

#define STEP_MS 100

struct deadline deadline_in(uint32_t seconds, const volatile sig_atomic_t *stop)
{
    return (struct deadline){
        .ns = clock_ns() + seconds * 1000000000ull, .seconds = seconds, .stop = stop};
}

int deadline_check(const struct deadline *d, struct sg_error *e)
{
    if (*d->stop)
        return fault_cancelled(e, "cancelled");
    if (clock_ns() >= d->ns)
        return fault_timeout(
            e, "it took more than %u seconds: allow more time, or use a smaller image", d->seconds);
    return 0;
}

int deadline_sleep(const struct deadline *d, uint64_t ms, struct sg_error *e)
{
    uint64_t until = clock_ns() + ms * 1000000;
    int r;

    while ((r = deadline_check(d, e)) == 0 && clock_ns() < until) {
        int left = clock_poll_ms(until);

        poll(NULL, 0, left < STEP_MS ? left : STEP_MS);
    }
    return r;
}
