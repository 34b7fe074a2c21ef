/* Answers the front's question for figures (ASK_FIGURES). */
#include "lib/text/json.h"
#include "guard/counts.h"
#include "guard/front_link.h"
#include "wire/process_figures.h"

static void put_process(struct json *j)
{
    struct order_process p;

    process_figures(&p);
    jw_object_begin(jw_key(j, "process"));
    jw_fixed(jw_key(j, "cpuSeconds"), p.cpu_usec, 6);
    jw_u64(jw_key(j, "residentBytes"), p.resident_bytes);
    jw_u64(jw_key(j, "openFds"), p.open_fds);
    jw_u64(jw_key(j, "maxFds"), p.max_fds);
    jw_i64(jw_key(j, "startedMs"), p.started_ms);
    jw_object_end(j);
}

static void put_sanitised(struct json *j, const struct guard *g)
{
    jw_object_begin(jw_key(j, "sanitised"));
    for (size_t i = 0; g->sanitised && i <= COUNTS_KINDS_MAX; i++)
        if (g->sanitised[i].n > 0)
            jw_u64(jw_key(j, g->sanitised[i].name), g->sanitised[i].n);
    jw_object_end(j);
}

static void put_dns(struct json *j, const struct guard *g)
{
    jw_object_begin(jw_key(j, "dns"));
    jw_u64(jw_key(j, "allowed"), g->dns_allowed);
    jw_u64(jw_key(j, "blocked"), g->dns_blocked);
    jw_object_end(j);
}

void front_ask_figures(const struct front_asker *from)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(GUARD_PAYLOAD_MAX);
    struct json j = {.out = &out};

    jw_object_begin(&j);
    put_process(&j);
    put_sanitised(&j, from->guard);
    put_dns(&j, from->guard);
    jw_object_end(&j);
    asker_answer(from, 0, out.buf, out.len, -1);
}
