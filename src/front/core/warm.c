#include "front/core/warm.h"

#include "lib/channel/wire.h"
#include "front/core/call.h"
#include "front/core/identity.h"

static void on_warm(struct call *c, int status, const char *message, const void *result UNUSED,
                    size_t len UNUSED)
{
    if (status > 0)
        sandbox_log_add(&c->sandbox->log, LOG_WARN, FAULT_INFRASTRUCTURE, 0,
                        "No kernel was started: %s", message);
    sandbox_unref(c->sandbox);
    free(c);
}

void sandbox_warm_kernel(struct sandbox *b)
{
    struct call *c = NEW(struct call, .uncounted = true, .on_end = on_warm);
    AUTO(strbuf_done) struct strbuf q = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&q, "python");
    identity_put_envs(b, NULL, NULL, &q);
    if (call_begin(c, b, OP_KERNEL_WARM, &q, NULL) < 0)
        free(c);
    else
        sandbox_ref(b);
}

/* The words are of the template's Python, in part. */
void sandbox_told_cold(struct front *f, const struct order_answer *a)
{
    struct sandbox *b = sandbox_find(f, a->id);

    if (b)
        snprintf(b->cold, sizeof(b->cold), "%.*s", COLD_MAX - 1, a->message);
}
