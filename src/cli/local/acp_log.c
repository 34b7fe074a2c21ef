#include "cli/local/acp_log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/log/log_form.h"

int acp_log_open(struct acp_log *l, const char *path, struct sg_error *e)
{
    *l = (struct acp_log){.fd = -1};
    if (!path)
        return 0;
    if (strcmp(path, "-") == 0) {
        l->fd = STDERR_FILENO;
        return 0;
    }
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    l->own = l->fd >= 0;
    return l->fd < 0 ? err_errno(e, "--log: cannot open '%.200s'", path) : 0;
}

void acp_log_done(struct acp_log *l)
{
    if (l->own)
        close_p(&l->fd);
    *l = (struct acp_log){.fd = -1};
}

void acp_log_say(const struct acp_log *l, enum settings_level level, enum fault fault, int status,
                 uint64_t ns, const char *fmt, ...)
{
    AUTO(strbuf_done) struct strbuf line = strbuf_upto(LOG_LINE_MAX);
    char message[1024];
    va_list ap;

    if (l->fd < 0)
        return;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    log_form_json(
        &(struct log_record){
            .ms = clock_wall_ms(),
            .level = level,
            .about = {.fault = fault, .sandbox_id = l->sandbox_id, .status = status, .ns = ns},
            .message = message},
        &line);
    fd_write_all(l->fd, line.buf, line.len); /* a full disk does not end the agent */
}
