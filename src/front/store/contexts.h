/* What is remembered of contexts: which sandbox a path of a conversation has, until when, and what
 * was used. docs/contexts.md has the life of a row.
 *
 *   contexts_sqlite.c     in this process: the server's file, or memory (store = memory)
 *   contexts_postgres.c   through the database worker (database worker.h), a process that has the
 * connections
 *
 * Every call is answered through its callback, exactly once, from the loop, never before the call
 * returns: whoever calls may still hold half-made state. What the request points to is read before
 * the call returns; what the reply points to is valid during the callback only.
 *
 * A reply's r is 0, or -errno with e filled:
 *   -EAGAIN   the store cannot be reached or written now, nothing was changed, try again (503)
 *   -EDQUOT   a limit is reached; the message names it
 *   -ENOENT   no such row of this tenant
 *   -EEXIST   there is one already
 *   -ESTALE   it is not any more as the caller believes
 *
 * All times are of the store's clock, in milliseconds since 1970. Every call but those of the
 * server itself (expire, recover, forget, seen) names the tenant, and never sees another's row. */
#pragma once

#include <uv.h>

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define CTX_NAME_MAX     256 /* bytes of a conversation's or path's id */
#define CTX_TEMPLATE_MAX 128
#define CTX_ERROR_MAX    256
#define CTX_URL_MAX      256
#define CTX_DAY_LEN      10 /* "2026-11-15", UTC */
#define CTX_LIST_MAX     200
#define CTX_DAYS_MAX     400

/*               settle           terminate, expire, merge
 *   CREATING ------------> READY ------------------------> TERMINATED
 *      |  ^                  |
 *      |  +------------------+ replace: its sandbox is gone, another is made
 *      +--> ERROR   it could not be made, or whoever made it went away
 *
 * The last two are final, have terminated_ms, and are kept until forget. At most one row of a
 * (tenant, conversation, path) is in one of the first two. */
enum ctx_status { CTX_CREATING, CTX_READY, CTX_TERMINATED, CTX_ERROR, CTX_STATUS_MAX_ };
#define CTX_ACTIVE ((1u << CTX_CREATING) | (1u << CTX_READY))
#define CTX_ALL    ((1u << CTX_STATUS_MAX_) - 1)

/* What was used, in the order of the columns:
 *   memory_mib_ms  MiB in use, times milliseconds
 *   bytes_...      between clients and the sandbox's agent
 *   executions     cells and programs
 *   sandboxes      that were made
 *   egress_...     bytes that programs sent out and got, through the guard */
#define CTX_USAGE(X) \
    X(cpu_us)        \
    X(memory_mib_ms) \
    X(bytes_in)      \
    X(bytes_out)     \
    X(executions)    \
    X(sandboxes)     \
    X(egress_up)     \
    X(egress_down)

struct ctx_usage {
#define CTX_USAGE_FIELD(name) uint64_t name;
    CTX_USAGE(CTX_USAGE_FIELD)
#undef CTX_USAGE_FIELD
};

struct ctx_row {
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    char conversation[CTX_NAME_MAX + 1], path[CTX_NAME_MAX + 1];
    char parent[CTX_NAME_MAX + 1]; /* path that this one was branched from; "" if none */
    char sandbox_id[ID_LEN + 1];   /* "": it has none now */
    char template_id[CTX_TEMPLATE_MAX + 1];
    enum ctx_status status;
    int64_t created_ms, used_ms, expires_ms, terminated_ms; /* 0: never */
    int64_t now_ms;                                         /* when this was read */
    uint64_t ttl_ms;
    char error[CTX_ERROR_MAX + 1];
    struct ctx_usage usage;
    char node[ID_LEN + 1];          /* the server that has the sandbox */
    char node_url[CTX_URL_MAX + 1]; /* where that is reached; "" if it did not say */
    bool node_alive;                /* it was seen not long ago (CTX_NODE_DEAD_MS) */
};

#define CTX_NODE_SEEN_MS 5000  /* how often a server says that it lives */
#define CTX_NODE_DEAD_MS 20000 /* after how long without it is dead, and its sandboxes with it */

/* A path of a conversation, whether it has a context or not. */
struct ctx_path {
    char path[CTX_NAME_MAX + 1], parent[CTX_NAME_MAX + 1]; /* parent "": a root */
    char merged_into[CTX_NAME_MAX + 1];                    /* "": not merged */
    int64_t created_ms;
    char context[ID_LEN + 1]; /* its active one; "" if none */
    enum ctx_status status;   /* of that */
};

/* Of a day, of a conversation, or of a conversation's day. */
struct ctx_usage_row {
    char day[CTX_DAY_LEN + 1];
    char conversation[CTX_NAME_MAX + 1]; /* "": of sandboxes that had none */
    struct ctx_usage usage;
};

enum ctx_usage_by {
    USAGE_BY_DAY,          /* oldest first, at most CTX_DAYS_MAX */
    USAGE_BY_CONVERSATION, /* in the order of their names, at most CTX_LIST_MAX */
};

struct ctx_usage_query {
    const char *tenant;
    const char *from, *to; /* days, both inclusive */
    enum ctx_usage_by by;
    const char *conversation; /* of this one alone; NULL: of all */
    const char *after;        /* a page by conversation: where the one before ended; NULL: first */
};

enum ctx_claimed {
    CLAIM_FOUND, /* it is ready, and its end was moved */
    CLAIM_NEW,   /* the row is new, CREATING, and this node's to settle */
    CLAIM_BUSY,  /* another node is making it; the row is that one's */
};

struct ctx_reply {
    int r;
    struct sg_error e;
    enum ctx_claimed claimed;
    const struct ctx_row *rows;
    size_t n;
    bool more; /* of a list: there are further rows after the last; of forget: call again */
    const struct ctx_path *paths;
    const struct ctx_usage_row *used;
    const char *kept; /* of replace: what settle or keep was given last; NULL: nothing */
    uint64_t cursor;  /* of forget: where to go on; 0: from the beginning */
};
typedef void (*ctx_done)(void *arg, const struct ctx_reply *reply);

/* How many sandboxes there may be: rows that are CREATING, or READY and have one. */
struct ctx_limits {
    uint32_t tenant, conversation;
};

struct ctx_claim {
    const char *tenant, *conversation, *path;
    const char *id, *node; /* of a new row, and who makes its sandbox */
    const char *template_id;
    const char *in_use; /* a sandbox of this node in which somebody works, or NULL */
    uint64_t ttl_ms;    /* 0: as it is; for a new row default_ttl_ms */
    uint64_t default_ttl_ms;
    uint64_t lease_ms; /* how long a node may take to make a sandbox */
    struct ctx_limits limits;
};

struct ctx_list {
    const char *tenant;
    const char *conversation, *path, *sandbox_id; /* NULL: any */
    unsigned statuses;                            /* a bit each */
    int64_t before_ms;                            /* 0 and "": from the newest on */
    const char *before_id;
    size_t limit; /* at most CTX_LIST_MAX */
};

/* What is old enough to be forgotten. A keep_ms of 0: nothing of that kind ever is. */
struct ctx_forget {
    uint64_t context_keep_ms; /* since a context ended; and of paths, see below */
    uint64_t usage_keep_ms;   /* since the day */
    uint64_t cursor;          /* of the call before; 0 at first */
    size_t limit;             /* of rows of each kind that are looked at; at most CTX_LIST_MAX */
};

#define CTX_KEPT_MAX (1792u * 1024) /* bytes of text that settle and keep take */

/* A change of what was used: added to the context's (if one is named), to the tenant's day and to
 * that of the context's conversation. */
struct ctx_usage_add {
    char tenant[ID_LEN + 1], context[ID_LEN + 1]; /* context may be "" */
    struct ctx_usage usage;
};

struct ctx_store;
struct ctx_store_ops {
    void (*close)(struct ctx_store *s);
    /* One transaction. An active row that is READY and not expired, or whose sandbox is in_use, is
     * FOUND: used_ms is now, expires_ms now + ttl. One that is expired is terminated first, one
     * that is CREATING for longer than lease_ms or on this very node (which would know) becomes an
     * ERROR; then, as if there had been none, a new one is made, if the limits allow. */
    void (*claim)(struct ctx_store *s, const struct ctx_claim *q, ctx_done done, void *arg);
    /* READY to CREATING on `node`, without a sandbox, if its sandbox still is `sandbox` ("": none);
     * -ESTALE. limits: only if it has none, since otherwise it is counted. The reply has what was
     * kept with the row. */
    void (*replace)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                    const char *node, const struct ctx_limits *limits, ctx_done done, void *arg);
    /* CREATING to READY with this sandbox; or, sandbox NULL, to ERROR with `error`. -ESTALE: it is
     * not CREATING on this node any more. kept: a text that stays with the row as long as that is
     * active, in place of the one before; NULL: that stays. */
    void (*settle)(struct ctx_store *s, const char *tenant, const char *id, const char *node,
                   const char *sandbox_id, const char *error, const char *kept, ctx_done done,
                   void *arg);
    /* Another text instead of the one that settle was given. -ESTALE: it is not READY with this
     * sandbox any more. */
    void (*keep)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                 const char *kept, ctx_done done, void *arg);
    /* It was used. ttl_ms 0: as it is. -ENOENT: none that is READY. */
    void (*touch)(struct ctx_store *s, const char *tenant, const char *id, uint64_t ttl_ms,
                  ctx_done done, void *arg);
    /* READY stays READY, without its sandbox. Nothing happens if it has another by now. */
    void (*lost)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                 ctx_done done, void *arg);
    /* One that is final already stays as it is. The row, with the sandbox that it had. */
    void (*terminate)(struct ctx_store *s, const char *tenant, const char *id, ctx_done done,
                      void *arg);
    void (*get)(struct ctx_store *s, const char *tenant, const char *id, ctx_done done, void *arg);
    /* Newest first. */
    void (*list)(struct ctx_store *s, const struct ctx_list *q, ctx_done done, void *arg);

    /* Notes that `to` comes from `from`. -EEXIST: `to` has an active context. */
    void (*branch)(struct ctx_store *s, const char *tenant, const char *conversation,
                   const char *from, const char *to, ctx_done done, void *arg);
    /* Notes that `source` went into `target`, and terminates its active context: the row, if there
     * was one. */
    void (*merge)(struct ctx_store *s, const char *tenant, const char *conversation,
                  const char *source, const char *target, ctx_done done, void *arg);
    /* Oldest first, at most CTX_LIST_MAX: paths that were branched, merged, or have had a context.
     */
    void (*paths)(struct ctx_store *s, const char *tenant, const char *conversation, ctx_done done,
                  void *arg);

    /* Terminates up to `limit` READY rows that have expired, and makes ERRORs of those that are
     * CREATING for longer than lease_ms: of this node, and of nodes that are dead. tenant NULL: of
     * all. The rows, with the sandboxes that they had. */
    void (*expire)(struct ctx_store *s, const char *node, const char *tenant, uint64_t lease_ms,
                   size_t limit, ctx_done done, void *arg);
    /* Once, at the start: what this node was making when it ended becomes an ERROR, and what is
     * READY with a sandbox of this node that is not among `alive` has none from now on. The rows,
     * of the latter with the sandbox that they had. */
    void (*recover)(struct ctx_store *s, const char *node, const char *const *alive, size_t n,
                    ctx_done done, void *arg);
    /* The node lives, and is reached there. */
    void (*seen)(struct ctx_store *s, const char *node, const char *url, ctx_done done, void *arg);
    /* The node ends: what is READY has no sandbox of it any more, and it is dead at once, until it
     * is seen again. */
    void (*leave)(struct ctx_store *s, const char *node, ctx_done done, void *arg);

    /* Deletes some of what is older than q says, a bounded number of rows each time: contexts that
     * have ended, the paths of a conversation that has no context any more and got no path since,
     * days of usage, servers that were not seen for as long as contexts are kept. `n` rows were
     * deleted; with `more` there may be others, and the next call begins at `cursor`. */
    void (*forget)(struct ctx_store *s, const struct ctx_forget *q, ctx_done done, void *arg);

    void (*usage_add)(struct ctx_store *s, const struct ctx_usage_add *adds, size_t n,
                      ctx_done done, void *arg);
    void (*usage_get)(struct ctx_store *s, const struct ctx_usage_query *q, ctx_done done,
                      void *arg);
};

/* What every kind begins with. */
struct ctx_store {
    const struct ctx_store_ops *ops;
    uv_loop_t *loop;
};

struct store;
/* In the server's own file; or in memory, s NULL. */
int ctx_store_sqlite(uv_loop_t *loop, struct store *s, struct ctx_store **ret, struct sg_error *e);
struct dbworker;
/* Takes the database worker over. Never fails: what cannot be reached answers -EAGAIN until it can.
 */
struct ctx_store *ctx_store_postgres(uv_loop_t *loop, struct dbworker *c);

const char *ctx_status_text(enum ctx_status s); /* "creating"... */
void ctx_usage_sum(struct ctx_usage *sum, const struct ctx_usage *more);
