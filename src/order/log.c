#include "order/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/json.h"

#define LINE_MAX_ 2048

static const char *const level_names[] = {"debug", "info", "warn", "error"};
_Static_assert(ARRAY_SIZE(level_names) == LEVEL_MAX_, "a name for each level");

static const char *const layer_names[] = {"code", "agent", "sandbox", "infrastructure", "client"};
_Static_assert(ARRAY_SIZE(layer_names) == LAYER_MAX_, "a name for each layer");

static enum settings_log log_form = SETTINGS_LOG_AUTO;
static enum settings_level log_least = LEVEL_INFO;

void log_set(enum settings_log form, enum settings_level level)
{
    log_form = form;
    log_least = level;
}

static void format_now(char *buf, size_t cap)
{
    struct timespec now;
    struct tm tm;
    size_t n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    n = strftime(buf, cap, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf + n, cap - n, ".%03ldZ", now.tv_nsec / 1000000);
}

const char *log_layer_name(enum log_layer layer)
{
    return layer_names[layer];
}

/* One write for each line, so that lines of several processes do not mix. */
static void write_line(enum settings_level level, const struct log_about *about, const char *fmt,
                       va_list ap) PRINTF(3, 0);

static void add_json_field(struct json *j, const char *key, const char *value)
{
    if (!value || !value[0])
        return;
    jw_key(j, key);
    jw_string(j, value);
}

static void write_line(enum settings_level level, const struct log_about *about, const char *fmt,
                       va_list ap)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char time[40], message[LINE_MAX_ / 2];
    struct json j;

    strbuf_init(&out, 4 * LINE_MAX_);
    if (level < log_least)
        return;
    vsnprintf(message, sizeof message, fmt, ap);
    for (char *p = message; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    format_now(time, sizeof time);
    if (log_form == SETTINGS_LOG_JSON) {
        jw_init(&j, &out);
        jw_object_begin(&j);
        add_json_field(&j, "time", time);
        add_json_field(&j, "level", level_names[level]);
        add_json_field(&j, "layer", layer_names[about->layer]);
        add_json_field(&j, "sandbox", about->sandbox);
        add_json_field(&j, "tenant", about->tenant);
        add_json_field(&j, "request", about->request);
        add_json_field(&j, "trace", about->trace);
        add_json_field(&j, "message", message);
        jw_object_end(&j);
    } else {
        strbuf_addf(&out, "%s %s %s%s%s%s", time, level_names[level],
                    about->sandbox ? "sandbox " : "", about->sandbox ? about->sandbox : "",
                    about->sandbox ? ": " : "", message);
    }
    strbuf_addch(&out, '\n');
    fd_write_all(STDERR_FILENO, out.buf, out.len);
}

void log_line(enum settings_level level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, &(struct log_about){.layer = LAYER_INFRASTRUCTURE}, fmt, ap);
    va_end(ap);
}

void log_sandbox(enum settings_level level, const char *id, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, &(struct log_about){.layer = LAYER_SANDBOX, .sandbox = id}, fmt, ap);
    va_end(ap);
}

void log_with(enum settings_level level, const struct log_about *about, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, about, fmt, ap);
    va_end(ap);
}

void log_counts(uint64_t *ret_written, uint64_t *ret_suppressed)
{
    *ret_written = *ret_suppressed = 0;
}
