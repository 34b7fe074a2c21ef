#include "warden/processes/trouble.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "lib/log/log.h"
#include "warden/server.h"

#define TROUBLE_NEW TROUBLE_NAME ".new"

/* Replaces the file completely, or not at all. */
static int replace(int dir, const struct strbuf *text)
{
    AUTO(close_p)
    int fd = openat(dir, TROUBLE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : fd_write_all(fd, text->buf, text->len);

    if (r == 0 && renameat(dir, TROUBLE_NEW, dir, TROUBLE_NAME) < 0)
        r = -errno;
    return r;
}

void trouble_write(const struct server *s)
{
    const struct child_program *const child_programs[] = {&s->front, &s->guard, &s->dbworker,
                                                          &s->exporter};
    AUTO(strbuf_done) struct strbuf text = {0};
    int r = 0;

    strbuf_init(&text, TROUBLE_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(child_programs); i++)
        if (child_programs[i]->why[0])
            strbuf_addf(&text, "%s: %s\n", child_programs[i]->kind->name, child_programs[i]->why);
    if (text.len > 0)
        r = replace(s->state.dir, &text);
    else if (unlinkat(s->state.dir, TROUBLE_NAME, 0) < 0 && errno != ENOENT)
        r = -errno;
    if (r < 0)
        log_line(LEVEL_WARN, "cannot update '" TROUBLE_NAME "' in the state directory: %s",
                 strerror(-r));
}
