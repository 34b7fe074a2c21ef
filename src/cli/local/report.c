#include "cli/local/report.h"

#include <signal.h>

#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "lib/command/exit_status.h"

/* Writes thousandths as a number with three decimals. */
static void key_milli(struct json *j, const char *key, uint64_t v)
{
    jw_fixed(jw_key(j, key), v, 3);
}

static void write_usage(struct json *j, const struct sg_usage *u)
{
    jw_object_begin(jw_key(j, "resource_usage"));
    key_milli(j, "cpu_user_ms", u->cpu_user_us);
    key_milli(j, "cpu_system_ms", u->cpu_system_us);
    jw_u64(jw_key(j, "memory_peak_bytes"), u->memory_peak_bytes);
    jw_u64(jw_key(j, "disk_bytes"), u->disk_bytes);
    jw_u64(jw_key(j, "stdout_bytes"), u->stdout_bytes);
    jw_u64(jw_key(j, "stderr_bytes"), u->stderr_bytes);
    jw_object_end(j);
}

static void write_limits(struct json *j, const struct sg_result *r)
{
    jw_object_begin(jw_key(j, "limits_applied"));
    jw_u64(jw_key(j, "timeout_ms"), r->timeout_ms);
    jw_u64(jw_key(j, "memory_bytes"), r->limits_applied.memory_bytes);
    key_milli(j, "cpus", r->limits_applied.cpus_milli);
    jw_u64(jw_key(j, "pids"), r->limits_applied.pids);
    jw_u64(jw_key(j, "disk_bytes"), r->limits_applied.disk_bytes);
    jw_u64(jw_key(j, "disk_inodes"), r->limits_applied.disk_inodes);
    jw_u64(jw_key(j, "output_bytes"), r->output_limit);
    jw_object_end(j);
}

static void write_results(struct json *j, const struct strbuf *results)
{
    const char *line = results->buf, *end = results->buf + results->len, *stop;

    jw_array_begin(jw_key(j, "results"));
    for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1)
        jw_raw(j, line, (size_t)(stop - line));
    jw_array_end(j);
}

void report_json(struct strbuf *out, const struct sg_result *r, const struct strbuf *results)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_bytes(jw_key(&j, "stdout"), r->stdout_data ? r->stdout_data : "", r->stdout_len);
    jw_bytes(jw_key(&j, "stderr"), r->stderr_data ? r->stderr_data : "", r->stderr_len);
    write_results(&j, results);
    jw_i64(jw_key(&j, "exit_code"), r->exit_code);
    key_milli(&j, "duration_ms", r->duration_us);
    jw_string(jw_key(&j, "status"), sg_status_name(r->status));
    jw_string(jw_key(&j, "error_message"), r->error_message[0] ? r->error_message : NULL);
    jw_string(jw_key(&j, "limit"), sg_limit_name(r->limit));
    write_usage(&j, &r->usage);
    write_limits(&j, r);
    jw_object_end(&j);
    strbuf_addch(out, '\n');
}

void report_setup_json(struct strbuf *out, const struct sg_error *e, uint64_t duration_us)
{
    struct json j = {.out = out};

    jw_object_begin(&j);
    jw_string(jw_key(&j, "stdout"), "");
    jw_string(jw_key(&j, "stderr"), "");
    jw_array_begin(jw_key(&j, "results"));
    jw_array_end(&j);
    jw_i64(jw_key(&j, "exit_code"), CLI_EXIT_SETUP);
    key_milli(&j, "duration_ms", duration_us);
    jw_string(jw_key(&j, "status"), sg_status_name(SG_STATUS_SETUP_ERROR));
    jw_string(jw_key(&j, "error_message"), e->message);
    jw_string(jw_key(&j, "limit"), NULL);
    jw_string(jw_key(&j, "resource_usage"), NULL);
    jw_string(jw_key(&j, "limits_applied"), NULL);
    jw_object_end(&j);
    strbuf_addch(out, '\n');
}

static const char *victim(const struct sg_result *r)
{
    return r->signal == SIGKILL ? "the program" : "a process";
}

bool report_line(char *buf, size_t cap, const struct sg_result *r)
{
    char v[32];

    switch (r->limit) {
    case SG_LIMIT_TIME:
        snprintf(buf, cap,
                 "time limit of %s reached: the program was killed; raise it with --timeout",
                 format_duration_us(r->timeout_ms * 1000, v, sizeof(v)));
        return true;
    case SG_LIMIT_MEMORY:
        snprintf(buf, cap, "memory limit of %s reached: %s was killed; raise it with --memory",
                 format_size(r->limits_applied.memory_bytes, v, sizeof(v)), victim(r));
        return true;
    case SG_LIMIT_PIDS:
        snprintf(buf, cap,
                 "limit of %u processes reached: no more could be started; raise it with --pids",
                 r->limits_applied.pids);
        return true;
    case SG_LIMIT_DISK:
        snprintf(buf, cap,
                 "disk limit of %s reached: no more could be written; raise it with --disk",
                 format_size(r->limits_applied.disk_bytes, v, sizeof(v)));
        return true;
    case SG_LIMIT_OUTPUT:
        snprintf(buf, cap,
                 "output limit of %s reached: the rest was dropped; raise it with --output-limit",
                 format_size(r->output_limit, v, sizeof(v)));
        return true;
    case SG_LIMIT_NONE:
    case SG_LIMIT_MAX_:
    default:
        if (r->signal == 0)
            return false;
        snprintf(buf, cap, "the program was ended by signal %d (%s)", r->signal,
                 strsignal(r->signal));
        return true;
    }
}
