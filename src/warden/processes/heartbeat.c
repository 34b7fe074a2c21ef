#include "warden/processes/heartbeat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/log/log.h"
#include "warden/processes/faults.h"
#include "warden/processes/notify.h"
#include "warden/server.h"

#define LOOK_NS       1000000000ull
#define STOPPED_LOOKS 5
#define SILENT_LOOKS  15
#define START_LOOKS   120

/* Whether the process is stopped, by a signal or by a tracer. */
static bool is_stopped(int pid)
{
    AUTO(free_p) char *text = NULL;
    const char *name_end;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (file_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return false;
    name_end = strrchr(text, ')');
    return name_end && (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

static void look_at(struct server *s, struct heartbeat *b)
{
    bool stopped;

    b->silent = b->heard ? 0 : b->silent + 1;
    b->heard = false;
    stopped = b->silent >= STOPPED_LOOKS && is_stopped(b->pid);
    if (!stopped && b->silent < (b->starting ? START_LOOKS : SILENT_LOOKS)) {
        b->kind->beat(b);
        return;
    }
    log_line(LEVEL_ERROR, "%s (pid %d) has not answered for %u s%s", process_name(b->kind->process),
             b->pid, b->silent, stopped ? " and is stopped" : "");
    fault_count(s, b->kind->process, stopped ? PROCESS_STOPPED : PROCESS_SILENT);
    b->silent = 0;
    b->kind->hung(b, stopped ? PROCESS_STOPPED : PROCESS_SILENT);
}

static void on_look(struct loop_timer *timer)
{
    struct server *s = CONTAINER_OF(timer, struct server, beats.timer);

    notify_watchdog();
    LIST_EACH(struct heartbeat, b, &s->beats.all, link)
        look_at(s, b);
    loop_timer_set(&s->loop, timer, clock_ns() + LOOK_NS);
}

void heartbeats_start(struct server *s)
{
    s->beats.timer.fn = on_look;
    loop_timer_set(&s->loop, &s->beats.timer, clock_ns() + LOOK_NS);
}

void heartbeats_stop(struct server *s)
{
    loop_timer_cancel(&s->loop, &s->beats.timer);
}

void heartbeat_start(struct server *s, struct heartbeat *b, const struct heartbeat_kind *kind,
                     int pid)
{
    *b = (struct heartbeat){.kind = kind, .pid = pid, .heard = true};
    list_push(&s->beats.all, &b->link);
}

void heartbeat_heard(struct heartbeat *b)
{
    b->heard = true;
}

void heartbeat_stop(struct heartbeat *b)
{
    list_remove(&b->link);
}
