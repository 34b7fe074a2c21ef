/* File operations in one go, and entries read back, for the tests of the agent's files. */
#pragma once

#include "agent_host.h"

/* The reason of the last refusal. */
static char message[512];

/* Each returns the status. */
static inline int put(struct agent_host *h, const char *user, const char *path, uint32_t mode,
                      uint32_t flags, const char *text)
{
    struct call c;

    call_open(h, &c, OP_FILE_WRITE, "ssuuu", user, path, mode, flags, 0u);
    if (text[0])
        chan_send(h->chan, c.stream, 0, text, strlen(text));
    chan_eof(h->chan, c.stream);
    EXPECT(host_wait(h, &c.ended, AGENT_WAIT_MS));
    int status = c.status;
    snprintf(message, sizeof(message), "%s", c.message);
    call_done(&c);
    return status;
}

static inline int get(struct agent_host *h, const char *user, const char *path, char *text,
                      size_t cap)
{
    struct call c;

    CALL(h, &c, OP_FILE_READ, "ssUU", user, path, (uint64_t)0, (uint64_t)0);
    int status = c.status;
    snprintf(text, cap, "%s", c.out.buf);
    snprintf(message, sizeof(message), "%s", c.message);
    call_done(&c);
    return status;
}

static inline int simple(struct agent_host *h, enum chan_op op, const char *fmt, const char *user,
                         const char *path, uint32_t a, uint32_t b)
{
    struct call c;

    CALL(h, &c, op, fmt, user, path, a, b);
    int status = c.status;
    snprintf(message, sizeof(message), "%s", c.message);
    call_done(&c);
    return status;
}

static inline int make_dir(struct agent_host *h, const char *user, const char *path, uint32_t flags)
{
    return simple(h, OP_FILE_MKDIR, "ssuu", user, path, 0750, flags);
}

static inline int discard(struct agent_host *h, const char *user, const char *path, uint32_t flags)
{
    return simple(h, OP_FILE_REMOVE, "ssu", user, path, flags, 0);
}

static inline int rename_to(struct agent_host *h, const char *user, const char *from,
                            const char *to)
{
    struct call c;

    CALL(h, &c, OP_FILE_MOVE, "sssu", user, from, to, 0u);
    int status = c.status;
    snprintf(message, sizeof(message), "%s", c.message);
    call_done(&c);
    return status;
}

struct entry_view {
    const char *name, *path, *owner, *group, *link, *target_path;
    uint32_t type, mode, uid, gid, target_type, target_mode;
    uint64_t size, mtime_ns, target_size;
    uint32_t n_meta;
    const char *keys[8], *values[8];
};

/* Points into what is read. */
static inline struct entry_view entry_read(struct wire_reader *r)
{
    struct entry_view v = {0};

    v.name = wire_get_str(r, OPS_PATH_MAX);
    v.path = wire_get_str(r, OPS_PATH_MAX);
    v.type = wire_get_u32(r);
    v.mode = wire_get_u32(r);
    v.uid = wire_get_u32(r);
    v.gid = wire_get_u32(r);
    v.owner = wire_get_str(r, OPS_NAME_MAX);
    v.group = wire_get_str(r, OPS_NAME_MAX);
    v.size = wire_get_u64(r);
    v.mtime_ns = wire_get_u64(r);
    v.link = wire_get_str(r, OPS_PATH_MAX);
    v.target_path = wire_get_str(r, OPS_PATH_MAX);
    v.target_type = wire_get_u32(r);
    v.target_mode = wire_get_u32(r);
    v.target_size = wire_get_u64(r);
    v.n_meta = wire_get_u32(r);
    for (uint32_t i = 0; i < v.n_meta && !r->bad; i++) {
        const char *key = wire_get_str(r, FILE_META_KEY_MAX);
        const char *value = wire_get_str(r, FILE_META_MAX);

        if (i < ARRAY_SIZE(v.keys)) {
            v.keys[i] = key;
            v.values[i] = value;
        }
    }
    EXPECT(!r->bad);
    return v;
}

/* The result of a call that has one entry. */
static inline struct entry_view call_entry(const struct call *c)
{
    struct wire_reader r;

    EXPECT(c->status == 0);
    if (c->status)
        printf("# %s\n", c->message);
    wire_reader_init(&r, c->result.buf, c->result.len);
    struct entry_view v = entry_read(&r);
    EXPECT(wire_done(&r));
    return v;
}

static inline const char *entry_meta(const struct entry_view *v, const char *key)
{
    for (uint32_t i = 0; i < v->n_meta && i < ARRAY_SIZE(v->keys); i++)
        if (strcmp(v->keys[i], key) == 0)
            return v->values[i];
    return "(none)";
}
