/* Spans at a rate, for a collector that is not there: what one costs, what is kept, and whether
 * anything else in the loop has to wait.
 *
 *   traces RATE SECONDS PORT    spans in a second, to http://127.0.0.1:PORT, where nobody listens
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <uv.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/settings/settings.h"
#include "front/telemetry/exporter.h"
#include "front/telemetry/exporter_wire.h"
#include "front/telemetry/trace.h"

#define TICK_MS 1

static struct {
    double rate;
    uint64_t begin_ns, end_ns, last_ns, late_ns, made;
    double cpu_us;
} run;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "traces: %s\n", what);
    exit(1);
}

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static long resident_kib(void)
{
    AUTO(free_p) char *text = NULL;
    size_t len;

    if (file_read(AT_FDCWD, "/proc/self/status", 65536, &text, &len) < 0)
        fail("/proc/self/status cannot be read");
    const char *at = strstr(text, "VmRSS:");
    return at ? strtol(at + strlen("VmRSS:"), NULL, 10) : 0;
}

/* As of a cell: what a span usually has. */
static void make_span(void)
{
    struct span *s = span_begin(SPAN_CELL, NULL);

    span_text(s, KEY_TENANT, "default");
    span_text(s, KEY_CONVERSATION, "conversation-0123456789");
    span_text(s, KEY_SESSION, "conversation-0123456789");
    span_text(s, KEY_PATH, "main");
    span_text(s, KEY_SANDBOX, "k3jd8f7s6d5f4g3h2j1k");
    span_text(s, KEY_TEMPLATE, "code-interpreter-v1");
    span_text(s, KEY_USER, "somebody");
    span_text(s, KEY_LANGUAGE, "python");
    span_end(&s);
    run.made++;
}

static void on_tick(uv_timer_t *timer)
{
    uint64_t now = clock_ns();
    double begin = cpu_us();

    if (run.last_ns && now - run.last_ns > run.late_ns)
        run.late_ns = now - run.last_ns;
    while ((double)run.made < (double)(now - run.begin_ns) * run.rate / 1e9)
        make_span();
    run.cpu_us += cpu_us() - begin;
    run.last_ns = clock_ns();
    if (now > run.end_ns)
        uv_timer_stop(timer);
}

/* As the warden starts it. */
static int start_exporter(void)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        fail("no socket pair");
    if (fork() == 0) {
        close(pair[0]);
        exporter_process(-1, pair[1], NULL);
    }
    close(pair[1]);
    return pair[0];
}

static void pass(uv_loop_t *loop, uv_timer_t *timer, double seconds)
{
    run.begin_ns = clock_ns();
    run.end_ns = run.begin_ns + (uint64_t)(seconds * 1e9);
    run.last_ns = run.late_ns = run.made = 0;
    run.cpu_us = 0;
    uv_timer_start(timer, on_tick, TICK_MS, TICK_MS);
    while (uv_is_active((uv_handle_t *)timer))
        uv_run(loop, UV_RUN_ONCE);
}

int main(int argc, char **argv)
{
    struct exporter *exporter = exporter_new(uv_default_loop());
    struct settings s;
    uv_timer_t timer;
    uv_loop_t *loop = uv_default_loop();

    if (argc != 4)
        fail("RATE SECONDS PORT");
    settings_init(&s);
    snprintf(s.otlp_endpoint, sizeof(s.otlp_endpoint), "http://127.0.0.1:%s", argv[3]);
    exporter_set_socket(exporter, start_exporter());
    trace_configure(&s, exporter, loop);
    uv_timer_init(loop, &timer);
    run.rate = strtod(argv[1], NULL);
    long before = resident_kib();
    pass(loop, &timer, 2); /* the queue is full after a second */
    long full = resident_kib();
    pass(loop, &timer, strtod(argv[2], NULL));
    double seconds = (double)(clock_ns() - run.begin_ns) / 1e9;
    printf("{\"a_second\": %.0f, \"us\": %.3f, \"late_ms\": %.2f, \"before_kib\": %ld, "
           "\"full_kib\": %ld, \"after_kib\": %ld}\n",
           (double)run.made / seconds, run.cpu_us / (double)run.made, (double)run.late_ns / 1e6,
           before, full, resident_kib());
    return 0;
}
