#include "lib/log/log.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/log/log_form.h"
#include "lib/log/log_rate.h"

#define MESSAGE_MAX 2048 /* as formatted; a line shows less of it (log_form.c) */

static struct {
    enum settings_log form;
    enum settings_level least;
    unsigned a_second;
    struct log_rate rate;
    int file;  /* -1: none */
    bool torn; /* the file's last line has no newline: the disk was full */
    uint64_t written, suppressed;
} state = {.form = SETTINGS_LOG_AUTO, .least = LEVEL_INFO, .file = -1};

void log_set(const struct settings *s)
{
    state.form = s->log;
    if (s->log == SETTINGS_LOG_AUTO)
        state.form = isatty(STDERR_FILENO) ? SETTINGS_LOG_TEXT : SETTINGS_LOG_JSON;
    state.least = s->log_level;
    state.a_second = s->log_rate;
}

void log_to_file(int fd)
{
    state.file = fd;
    state.torn = false;
}

/* One write for each line, so that lines of several processes do not mix. */
static void write_file(const struct log_record *r)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(LOG_LINE_MAX);
    ssize_t n;

    if (state.file < 0)
        return;
    if (state.torn)
        strbuf_addch(&out, '\n');
    log_form_json(r, &out);
    do
        n = write(state.file, out.buf, out.len);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        state.torn = (size_t)n < out.len;
}

/* Cannot block: if poll calls a pipe writable, it takes PIPE_BUF bytes at once. */
static void write_stderr(const struct log_record *r)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(LOG_LINE_MAX);
    ssize_t n;

    if (poll(&room, 1, 0) <= 0)
        return;
    if (state.form == SETTINGS_LOG_JSON)
        log_form_json(r, &out);
    else
        log_form_text(r, &out);
    do
        n = write(STDERR_FILENO, out.buf, out.len);
    while (n < 0 && errno == EINTR);
}

static void write_record(const struct log_record *r)
{
    state.written++;
    write_stderr(r);
    write_file(r);
}

static void tell_suppressed(uint64_t n)
{
    char text[96];

    snprintf(text, sizeof(text), "%llu line%s suppressed: more than log_rate allows",
             (unsigned long long)n, n == 1 ? "" : "s");
    write_record(&(struct log_record){.ms = clock_wall_ms(),
                                      .level = LEVEL_WARN,
                                      .about.fault = FAULT_INFRASTRUCTURE,
                                      .message = text});
}

static void write_line(enum settings_level level, const struct log_about *about, const char *fmt,
                       va_list ap) PRINTF(3, 0);

static void write_line(enum settings_level level, const struct log_about *about, const char *fmt,
                       va_list ap)
{
    uint64_t now = clock_ns(), due;
    char message[MESSAGE_MAX];

    if (level < state.least)
        return;
    if (log_rate_take(&state.rate, state.a_second, level == LEVEL_ERROR, now)) {
        vsnprintf(message, sizeof(message), fmt, ap);
        write_record(&(struct log_record){
            .ms = clock_wall_ms(), .level = level, .about = *about, .message = message});
    } else {
        state.suppressed++;
    }
    due = log_rate_due(&state.rate, now);
    if (due)
        tell_suppressed(due);
}

void log_line(enum settings_level level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, &(struct log_about){.fault = FAULT_INFRASTRUCTURE}, fmt, ap);
    va_end(ap);
}

void log_sandbox(enum settings_level level, enum fault fault, const char *id, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_line(level, &(struct log_about){.fault = fault, .sandbox_id = id}, fmt, ap);
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
    *ret_written = state.written;
    *ret_suppressed = state.suppressed;
}
