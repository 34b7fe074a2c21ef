/* Answers the front's question for figures (ASK_FIGURES). */
#include "lib/text/json.h"
#include "guard/counts.h"
#include "guard/front_link.h"
#include "wire/process_figures.h"

static void put_process(struct json *j)
{
    struct order_process p;

    process_figures(&p);
    jw_key(j, "process");
    jw_object_begin(j);
    jw_key(j, "cpuSeconds");
    jw_fixed(j, p.cpu_usec, 6);
    jw_key(j, "residentBytes");
    jw_u64(j, p.resident_bytes);
    jw_key(j, "openFds");
    jw_u64(j, p.open_fds);
    jw_key(j, "maxFds");
    jw_u64(j, p.max_fds);
    jw_key(j, "startedMs");
    jw_i64(j, p.started_ms);
    jw_object_end(j);
}

static void put_sanitised(struct json *j, const struct guard *g)
{
    jw_key(j, "sanitised");
    jw_object_begin(j);
    for (size_t i = 0; g->sanitised && i <= COUNTS_KINDS_MAX; i++)
        if (g->sanitised[i].n > 0) {
            jw_key(j, g->sanitised[i].name);
            jw_u64(j, g->sanitised[i].n);
        }
    jw_object_end(j);
}

static void put_dns(struct json *j, const struct guard *g)
{
    jw_key(j, "dns");
    jw_object_begin(j);
    jw_key(j, "allowed");
    jw_u64(j, g->dns_allowed);
    jw_key(j, "blocked");
    jw_u64(j, g->dns_blocked);
    jw_object_end(j);
}

void front_ask_figures(const struct front_asker *from)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    struct json j;

    strbuf_init(&out, GUARD_PAYLOAD_MAX);
    jw_init(&j, &out);
    jw_object_begin(&j);
    put_process(&j);
    put_sanitised(&j, from->guard);
    put_dns(&j, from->guard);
    jw_object_end(&j);
    asker_answer(from, 0, out.buf, out.len, -1);
}
