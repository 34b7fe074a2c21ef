/* The store of contexts: which sandbox a path of a conversation has, until when, and how much was
 * used. docs/contexts.md has the life of a row.
 *
 *   contexts_sqlite.c     in this process: the server's file, or memory (store = memory)
 *   contexts_postgres.c   through the database worker (dbworker.h), which has the connections
 *
 * The store answers every call through its callback, exactly once, from the loop. The callback
 * never comes before the call returns, because the caller may still hold half-made state. The call
 * reads all that its request points to before it returns; a reply points to memory that is valid
 * only during the callback.
 *
 * A reply's r is 0, or -errno with e filled:
 *   -EAGAIN   the store cannot be reached or written now, nothing was changed, try again (503)
 *   -EDQUOT   a limit is reached; the message names it
 *   -ENOENT   this tenant has no such row
 *   -EEXIST   the row exists already
 *   -ESTALE   the row has changed since the caller looked
 *
 * All times are of the store's clock, in milliseconds since 1970. Every call names the tenant, and
 * never sees another tenant's row; only the server's own calls (expire, recover, forget, seen,
 * leave) concern all tenants. */
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
 *      |  +------------------+ replace: the sandbox is gone, another is made
 *      +--> ERROR   no sandbox could be made, or the server that made it went away
 *
 * TERMINATED and ERROR are final: such a row has terminated_ms, and stays until forget deletes it.
 * At most one row of a (tenant, conversation, path) is CREATING or READY; that row is called
 * active. */
enum ctx_status { CTX_CREATING, CTX_READY, CTX_TERMINATED, CTX_ERROR, CTX_STATUS_MAX_ };
#define CTX_ACTIVE ((1u << CTX_CREATING) | (1u << CTX_READY))
#define CTX_ALL    ((1u << CTX_STATUS_MAX_) - 1)

/* Usage, in the order of the columns:
 *   memory_mib_ms  MiB in use, times milliseconds
 *   bytes_...      between clients and the sandbox's agent
 *   executions     cells and programs
 *   sandboxes      that were made
 *   egress_...     bytes that programs sent out and received, through the guard */
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
    char parent[CTX_NAME_MAX + 1]; /* the path that this one was branched from; "" if none */
    char sandbox_id[ID_LEN + 1];   /* "": the context has no sandbox now */
    char template_id[CTX_TEMPLATE_MAX + 1];
    enum ctx_status status;
    int64_t created_ms, used_ms, expires_ms, terminated_ms; /* 0: never */
    int64_t now_ms;                                         /* when the row was read */
    uint64_t ttl_ms;
    char error[CTX_ERROR_MAX + 1];
    struct ctx_usage usage;
    char node[ID_LEN + 1];          /* the server that has the sandbox */
    char node_url[CTX_URL_MAX + 1]; /* where that server is reached; "" if it did not say */
    bool node_alive;                /* that server was seen less than CTX_NODE_DEAD_MS ago */
};

#define CTX_NODE_SEEN_MS 5000  /* how often a server says that it lives */
#define CTX_NODE_DEAD_MS 20000 /* a server not seen for so long is dead, and its sandboxes too */

/* A path of a conversation, whether it has a context or not. */
struct ctx_path {
    char path[CTX_NAME_MAX + 1], parent[CTX_NAME_MAX + 1]; /* parent "": a root */
    char merged_into[CTX_NAME_MAX + 1];                    /* "": not merged */
    int64_t created_ms;
    char context[ID_LEN + 1]; /* the active context; "" if none */
    enum ctx_status status;   /* of that context */
};

/* The usage of a day, of a conversation, or of a conversation on a day. */
struct ctx_usage_row {
    char day[CTX_DAY_LEN + 1];
    char conversation[CTX_NAME_MAX + 1]; /* "": sandboxes without a conversation */
    struct ctx_usage usage;
};

enum ctx_usage_by {
    USAGE_BY_DAY,          /* oldest first, at most CTX_DAYS_MAX */
    USAGE_BY_CONVERSATION, /* sorted by name, at most CTX_LIST_MAX */
};

struct ctx_usage_query {
    const char *tenant;
    const char *from, *to; /* days, both inclusive */
    enum ctx_usage_by by;
    const char *conversation; /* only this one; NULL: all */
    const char *after;        /* by conversation: end of the previous page; NULL: first page */
};

enum ctx_claimed {
    CLAIM_FOUND, /* the context is READY; its end was moved */
    CLAIM_NEW,   /* the row is new and CREATING; this node must settle it */
    CLAIM_BUSY,  /* another node is making the sandbox; the row is that node's */
};

struct ctx_reply {
    int r;
    struct sg_error e;
    enum ctx_claimed claimed;
    const struct ctx_row *rows;
    size_t n;
    bool more; /* of a list: more rows follow the last; of forget: call again */
    const struct ctx_path *paths;
    const struct ctx_usage_row *used;
    const char *kept; /* of replace: the text that settle or keep stored last, or NULL */
    uint64_t cursor;  /* of forget: where the next call begins; 0: at the start */
};
typedef void (*ctx_done)(void *arg, const struct ctx_reply *reply);

/* How many sandboxes a tenant and a conversation may have. Counted are rows that are CREATING, and
 * READY rows with a sandbox. */
struct ctx_limits {
    uint32_t tenant, conversation;
};

struct ctx_claim {
    const char *tenant, *conversation, *path;
    const char *id, *node; /* of a new row, and the server that makes its sandbox */
    const char *template_id;
    const char *in_use; /* a sandbox of this node that is being used now, or NULL */
    uint64_t ttl_ms;    /* 0: unchanged; for a new row, default_ttl_ms */
    uint64_t default_ttl_ms;
    uint64_t lease_ms; /* how long a node may take to make a sandbox */
    struct ctx_limits limits;
};

struct ctx_list {
    const char *tenant;
    const char *conversation, *path, *sandbox_id; /* NULL: any */
    unsigned statuses;                            /* one bit for each status */
    int64_t before_ms;                            /* 0 and "": from the newest on */
    const char *before_id;
    size_t limit; /* at most CTX_LIST_MAX */
};

/* How old rows must be to be deleted. A keep_ms of 0: rows of that kind are never deleted. */
struct ctx_forget {
    uint64_t context_keep_ms; /* since the end of a context; also for paths, see forget */
    uint64_t usage_keep_ms;   /* since the day */
    uint64_t cursor;          /* from the previous reply; 0 in the first call */
    size_t limit;             /* rows of each kind that one call looks at, at most CTX_LIST_MAX */
};

#define CTX_KEPT_MAX (1792u * 1024) /* bytes of the text that settle and keep store */

/* Usage to add: to the context (if one is named), to the tenant's day, and to the day of the
 * context's conversation. */
struct ctx_usage_add {
    char tenant[ID_LEN + 1], context[ID_LEN + 1]; /* context may be "" */
    struct ctx_usage usage;
};

struct ctx_store;
struct ctx_store_ops {
    void (*close)(struct ctx_store *s);
    /* Finds or makes the context of a path, in one transaction. An active row is FOUND if it is
     * READY and not expired, or if its sandbox is in_use: used_ms becomes now, expires_ms now +
     * ttl. An expired row is terminated first. A CREATING row becomes an ERROR if it is older than
     * lease_ms, or if it is this very node's, which would know of it. After either, and if there
     * was no row, a new one is made if the limits allow. A CREATING row of another node is BUSY. */
    void (*claim)(struct ctx_store *s, const struct ctx_claim *q, ctx_done done, void *arg);
    /* Changes a READY row to CREATING on `node`, without a sandbox, to make another one. -ESTALE:
     * the row is not READY with `sandbox_id` ("": none) any more. Checks the limits only if the row
     * has no sandbox, since a row with one is counted already. The reply has the text kept with the
     * row. */
    void (*replace)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                    const char *node, const struct ctx_limits *limits, ctx_done done, void *arg);
    /* Changes a CREATING row to READY with this sandbox or, with sandbox_id NULL, to ERROR with
     * `error`. -ESTALE: the row is not CREATING on this node any more. kept: a text that replaces
     * the one kept with the row, as long as the row is active; NULL leaves the old text. */
    void (*settle)(struct ctx_store *s, const char *tenant, const char *id, const char *node,
                   const char *sandbox_id, const char *error, const char *kept, ctx_done done,
                   void *arg);
    /* Replaces the text that settle stored. -ESTALE: the row is not READY with this sandbox any
     * more. */
    void (*keep)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                 const char *kept, ctx_done done, void *arg);
    /* Notes that the context was used. ttl_ms 0: unchanged. -ENOENT: there is no such READY row. */
    void (*touch)(struct ctx_store *s, const char *tenant, const char *id, uint64_t ttl_ms,
                  ctx_done done, void *arg);
    /* Takes the sandbox out of a READY row, which stays READY. Does nothing if the row has another
     * sandbox by now. */
    void (*lost)(struct ctx_store *s, const char *tenant, const char *id, const char *sandbox_id,
                 ctx_done done, void *arg);
    /* Terminates the row; a final row stays as it is. Replies with the row and the sandbox it
     * had. */
    void (*terminate)(struct ctx_store *s, const char *tenant, const char *id, ctx_done done,
                      void *arg);
    void (*get)(struct ctx_store *s, const char *tenant, const char *id, ctx_done done, void *arg);
    /* Newest first. */
    void (*list)(struct ctx_store *s, const struct ctx_list *q, ctx_done done, void *arg);

    /* Notes that the path `to` was branched from `from`. -EEXIST: `to` has an active context. */
    void (*branch)(struct ctx_store *s, const char *tenant, const char *conversation,
                   const char *from, const char *to, ctx_done done, void *arg);
    /* Notes that `source` was merged into `target`, and terminates the active context of `source`.
     * Replies with its row, if there was one. */
    void (*merge)(struct ctx_store *s, const char *tenant, const char *conversation,
                  const char *source, const char *target, ctx_done done, void *arg);
    /* The paths that were branched, merged, or have had a context: oldest first, at most
     * CTX_LIST_MAX. */
    void (*paths)(struct ctx_store *s, const char *tenant, const char *conversation, ctx_done done,
                  void *arg);

    /* Terminates up to `limit` READY rows that have expired, and makes ERRORs of rows that have
     * been CREATING for longer than lease_ms: rows of this node, and of nodes that are dead. tenant
     * NULL: of all tenants. Replies with the rows and the sandboxes they had. */
    void (*expire)(struct ctx_store *s, const char *node, const char *tenant, uint64_t lease_ms,
                   size_t limit, ctx_done done, void *arg);
    /* Called once, when the server starts. Rows that this node was CREATING when it ended become
     * ERRORs; READY rows with a sandbox of this node that is not among `alive` lose the sandbox.
     * Replies with the rows; the READY ones still show the sandbox that they had. */
    void (*recover)(struct ctx_store *s, const char *node, const char *const *alive, size_t n,
                    ctx_done done, void *arg);
    /* Notes that the node lives, and the URL where it is reached. */
    void (*seen)(struct ctx_store *s, const char *node, const char *url, ctx_done done, void *arg);
    /* Notes that the node ends: its READY rows lose their sandbox, and it counts as dead at once,
     * until it is seen again. */
    void (*leave)(struct ctx_store *s, const char *node, ctx_done done, void *arg);

    /* Deletes rows that are older than q says, a bounded number in each call: contexts that have
     * ended; the paths of a conversation that has no context left and got no new path since; days
     * of usage; servers that were not seen for as long as contexts are kept. Replies with `n`, the
     * rows deleted; with `more` there may be others, and the next call begins at `cursor`. */
    void (*forget)(struct ctx_store *s, const struct ctx_forget *q, ctx_done done, void *arg);

    void (*usage_add)(struct ctx_store *s, const struct ctx_usage_add *adds, size_t n,
                      ctx_done done, void *arg);
    void (*usage_get)(struct ctx_store *s, const struct ctx_usage_query *q, ctx_done done,
                      void *arg);
};

/* Every kind of store begins with this. */
struct ctx_store {
    const struct ctx_store_ops *ops;
    uv_loop_t *loop;
};
/* ctx_call(s, get, tenant, id, done, arg) */
#define ctx_call(s, op, ...) (s)->ops->op(s, __VA_ARGS__)

struct store;
/* Keeps contexts in the server's own file or, with s NULL, in memory. */
int ctx_store_sqlite(uv_loop_t *loop, struct store *s, struct ctx_store **ret, struct sg_error *e);
struct dbworker;
/* Keeps contexts in PostgreSQL; takes over the database worker. Never fails: while the database
 * cannot be reached, every call is answered -EAGAIN. */
struct ctx_store *ctx_store_postgres(uv_loop_t *loop, struct dbworker *c);

const char *ctx_status_text(enum ctx_status s); /* "creating"... */
void ctx_usage_sum(struct ctx_usage *sum, const struct ctx_usage *more);
