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

static enum settings_log log_form = SETTINGS_LOG_TEXT;
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

static void add_json(struct strbuf *out, const char *time, enum settings_level level,
                     const char *id, const char *message)
{
    struct json j;

    jw_init(&j, out);
    jw_object_begin(&j);
    jw_key(&j, "time");
    jw_string(&j, time);
    jw_key(&j, "level");
    jw_string(&j, level_names[level]);
    if (id) {
        jw_key(&j, "sandbox");
        jw_string(&j, id);
    }
    jw_key(&j, "message");
    jw_string(&j, message);
    jw_object_end(&j);
}

static void write_line(enum settings_level level, const char *id, const char *fmt, va_list ap)
    PRINTF(3, 0);

/* One write for each line, so that lines of several processes do not mix. */
static void write_line(enum settings_level level, const char *id, const char *fmt, va_list ap)
{
    AUTO(strbuf_done) struct strbuf out = {0};
    char time[40], message[LINE_MAX_ / 2];

    strbuf_init(&out, 4 * LINE_MAX_);
    if (level < log_least)
        return;
    vsnprintf(message, sizeof message, fmt, ap);
    for (char *p = message; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    format_now(time, sizeof time);
    if (log_form == SETTINGS_LOG_JSON)
        add_json(&out, time, level, id, message);
    else
        strbuf_addf(&out, "%s %s %s%s%s%s", time, level_names[level], id ? "sandbox " : "",
                    id ? id : "", id ? ": " : "", message);
    strbuf_addch(&out, '\n');
    fd_write_all(STDERR_FILENO, out.buf, out.len);
}

void log_line(enum settings_level level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, NULL, fmt, ap);
    va_end(ap);
}

void log_sandbox(enum settings_level level, const char *id, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, id, fmt, ap);
    va_end(ap);
}
