#include "inside/agent/memory.h"

#include <string.h>

#include "inside/agent/serve.h"

#define NEAR_BYTES (1u << 20) /* this near is at the limit: pages are charged in batches */

/* A line "key number" of a text; 0 without. */
static uint64_t value_of(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *p = text; *p; p = strchrnul(p, '\n'), p += *p == '\n')
        if (strncmp(p, key, len) == 0 && p[len] == ' ')
            return strtoull(p + len, NULL, 10);
    return 0;
}

static uint64_t number_of(const struct view_fds *v, const char *name)
{
    char buf[VIEW_GROUP_MAX];

    return strtoull(view_read_group(v, name, buf), NULL, 10);
}

struct memory_mark memory_look(const struct agent *a)
{
    const struct view_fds *v = a->config->view;
    char buf[VIEW_GROUP_MAX];
    struct memory_mark m = {0};

    if (v) {
        view_read_group(v, v->v1 ? "memory/memory.oom_control" : "memory.events", buf);
        m.kills = value_of(buf, "oom_kill");
        m.full = value_of(buf, "oom"); /* v1 does not count it */
    }
    return m;
}

uint64_t memory_ended(struct agent *a, const struct memory_mark *since)
{
    const struct view_fds *v = a->config->view;
    struct memory_mark now = memory_look(a);
    uint64_t told = a->kills_told > since->kills ? a->kills_told : since->kills;

    if (now.kills <= told)
        return 0;
    uint64_t limit = number_of(v, v->v1 ? "memory/memory.limit_in_bytes" : "memory.max");
    uint64_t peak = v->v1 ? number_of(v, "memory/memory.max_usage_in_bytes") : 0;
    if (v->v1 ? peak + NEAR_BYTES < limit : now.full <= since->full)
        return 0;
    a->kills_told = told + 1;
    return limit;
}
