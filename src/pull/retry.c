#include "pull/retry.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "pull/fault.h"
#include "pull/report.h"
#include "pull/request.h"

#define FIRST_PAUSE_MS 500
#define PAUSE_MAX_MS   30000
#define WISH_MAX_MS    120000

int retry(struct http *h, int (*once)(void *arg, struct attempt *ret, struct sg_error *e),
          void *arg, struct sg_error *e)
{
    struct sg_error why = {0};
    uint64_t pause = FIRST_PAUSE_MS;

    for (uint32_t n = 1;; n++) {
        struct attempt a = {0};
        int r = once(arg, &a, &why);

        if (a.further) {
            n = 1;
            pause = FIRST_PAUSE_MS;
        }
        if (r == 0)
            return 0;
        if (!a.again || n >= h->request->limits.attempts) {
            if (e)
                *e = why;
            return r;
        }
        uint64_t wish = a.after_ms < WISH_MAX_MS ? a.after_ms : WISH_MAX_MS;
        uint64_t ms = wish > pause ? wish : pause;
        if (report_waiting(ms, why.message) < 0)
            return fault_cancelled(e, "cancelled");
        if ((r = deadline_sleep(h->deadline, ms, e)) < 0)
            return r;
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
    }
}

/* The code of a registry's own error, such as " (MANIFEST_UNKNOWN)"; its words are a stranger's. */
static void registry_code(const struct http_answer *a, char *ret, size_t cap)
{
    json_t *json = json_loadb(a->trouble.buf, a->trouble.len, 0, NULL);
    const json_t *first = json_array_get(json_object_get(json, "errors"), 0);
    const char *code = jr_text(first, "code");

    ret[0] = '\0';
    if (code[0] && strlen(code) < 40 &&
        !code[strspn(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")])
        snprintf(ret, cap, " (%s)", code);
    json_decref(json);
}

int retry_status(const struct http_answer *a, const char *what, const char *origin,
                 struct attempt *ret, struct sg_error *e)
{
    char code[64];

    registry_code(a, code, sizeof(code));
    switch (a->status) {
    case 401:
    case 403:
        return fault_denied(e, "%s does not give %s to these credentials%s", origin, what, code);
    case 404:
        return fault_not_found(e, "%s does not have %s%s", origin, what, code);
    case 407:
        return fault_denied(e, "the proxy does not let us ask %s", origin);
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        ret->again = true;
        ret->after_ms = a->retry_after_ms;
        return fault_busy(e, "%s answered %ld to a request for %s%s: try again later", origin,
                          a->status, what, code);
    default:
        return fault_corrupt(e, "%s answered %ld to a request for %s%s: is it a registry?", origin,
                             a->status, what, code);
    }
}
