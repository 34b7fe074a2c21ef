/* Shared by the files of lib/audit; audit.h is for others.
 *
 *   record.c   a line: made from a record, and taken apart
 *   pending.c  records that are not written yet, folded if they are many
 *   sign.c     the key that signs heads
 *   rotate.c   the files: their names, which there are, the next one; the folders of tenants
 *   chain.c    one chain, and writing to it
 *   log.c      all chains
 *   sync.c     makes written lines durable
 *   back.c     the lines of a chain, the newest first
 *   query.c    reads backwards, over all chains
 *   verify.c   reads forwards, and believes nothing
 *
 * "The top chain" is the one in the folder above, with records that belong to no tenant. */
#pragma once

#include "lib/base/clock.h"
#include "lib/audit/audit.h"
#include "lib/base/map.h"

#define AUDIT_HASH_LEN 64 /* hexadecimal */
#define AUDIT_TIME_LEN (CLOCK_TEXT_LEN - 1)
/* Room for all texts of a record at their longest, each byte escaped, and for the frame around
 * them. */
#define AUDIT_LINE_MAX 16384u

/* ---- record.c -------------------------------------------------------------------------------- */

struct audit_head {
    uint64_t seq; /* 0: none */
    char hash[AUDIT_HASH_LEN + 1];
};
/* The end of a chain, which the next line continues. */
struct audit_place {
    uint64_t seq;           /* the last number that was given out, in any chain */
    uint64_t records;       /* in the chain; heads have a seq but do not count as records */
    struct audit_head head; /* the last head */
    uint64_t since_head;    /* records after the last head */
    char hash[AUDIT_HASH_LEN + 1];
};
void audit_place_init(struct audit_place *p);

/* Append a line with its newline, and move the place on. */
struct audit_signer;
void audit_print_record(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint64_t count,
                        const struct audit_record *r);
void audit_print_head(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint32_t file,
                      const struct audit_signer *signer);

/* The frame of a line: the fields that every line has. Pointers point into the line. */
struct audit_line {
    uint64_t seq;
    const char *time;       /* AUDIT_TIME_LEN */
    const char *prev;       /* AUDIT_HASH_LEN, as is hash */
    const char *hash;       /* of the first hashed bytes of the line */
    size_t hashed;          /* how many bytes of the line the hash covers */
    const char *signature;  /* NULL: the line is no head */
    size_t signature_len;   /* as base64 */
    size_t signed_len;      /* how many bytes of the line it covers */
    uint64_t records, file; /* of a head */
};
/* -EINVAL: the text does not have the form of our lines. line has no newline. */
int audit_line_read(const char *line, size_t len, struct audit_line *ret);
/* The value of a text field as it stands in the line, with escapes. NULL: there is none. The
 * content of another field cannot fake a key, because quotes in content have a backslash before
 * them. */
const char *audit_line_text(const char *line, size_t len, const char *key, size_t *ret_len);
/* Hashes the first len bytes of the line. */
void audit_hash_text(const char *line, size_t len, char ret[AUDIT_HASH_LEN + 1]);

/* ---- pending.c ------------------------------------------------------------------------------- */

struct audit_entry {
    struct list link;     /* in its queue, in order of time */
    struct map_node node; /* in the table */
    uint64_t count;
    int64_t time_ms;
    uint64_t again_ns;     /* if written: when to write the equal ones that came since */
    struct audit_record r; /* its texts follow */
};
struct audit_queue {
    struct list all;
    size_t n;
};
/* The pending records of one chain. */
struct audit_pending {
    struct map *table;         /* the entries of all chains, by a hash of their content */
    struct audit_queue wait;   /* to be written */
    struct audit_queue recent; /* refusals that were written and may come again */
};
void audit_pending_add(struct audit_pending *p, const struct audit_record *r, int64_t time_ms);
/* The first n records that waited were written. */
void audit_pending_written(struct audit_pending *p, size_t n, uint64_t now_ns);
/* Queues the refusals that came again since they were written, if it is time; all: in any case. */
void audit_pending_repeat(struct audit_pending *p, uint64_t now_ns, bool all);
void audit_pending_done(struct audit_pending *p);

/* ---- sign.c ---------------------------------------------------------------------------------- */

#define AUDIT_KEY_FILE    "head.key"
#define AUDIT_PUBLIC_FILE "head.pub"

/* Opens the signing key, or makes one if the directory has none. */
int audit_signer_open(int dirfd, struct audit_signer **ret, struct sg_error *e);
void audit_signer_free(struct audit_signer *s); /* NULL is allowed; for checkers too */
/* Appends the signature as base64. */
void audit_sign(const struct audit_signer *s, const void *data, size_t len, struct strbuf *out);

/* The same with the public half alone, to check signatures. pem: NULL for the directory's own. */
int audit_checker_open(int dirfd, const char *pem, struct audit_signer **ret, struct sg_error *e);
bool audit_check(const struct audit_signer *s, const void *data, size_t len, const char *signature,
                 size_t signature_len);

/* ---- rotate.c -------------------------------------------------------------------------------- */

/* The numbers of the files that are there, ascending; to be freed. */
int audit_files(int dirfd, uint32_t **ret, size_t *ret_n, struct sg_error *e);
/* Opens a file of the chain. flags: of open(2). Refuses all but regular files. Descriptor or
 * -errno. */
int audit_file_open(int dirfd, uint32_t number, int flags);
void audit_file_name(uint32_t number, char *buf, size_t cap);
/* Removes files from *oldest on until `keep` of them are left, the last being `newest`. */
void audit_files_trim(int dirfd, uint32_t *oldest, uint32_t newest, uint32_t keep);
/* The tenants that have a chain, sorted; to be freed. */
int audit_tenants(int dirfd, char (**ret)[ID_LEN + 1], size_t *ret_n, struct sg_error *e);
/* Opens the folder of a tenant; "": the top folder itself. Descriptor or -errno. */
int audit_tenant_open(int dirfd, const char *tenant);

/* ---- chain.c --------------------------------------------------------------------------------- */

struct audit_chain {
    struct list link;
    int top;                 /* the top folder; another owns the descriptor */
    char tenant[ID_LEN + 1]; /* "": the top chain */
    struct audit_pending pending;
    struct audit_place place;
    int dir, fd;             /* its folder, and the newest file; both may be closed */
    bool next_file;          /* the next write begins a new file */
    uint32_t oldest, newest; /* numbers of files; newest is 0 if there is none */
    uint64_t size;
    uint64_t head_ns;  /* when the last head was written */
    uint64_t noted_ns; /* when the top chain last noted a head of this chain, */
    uint64_t noted;    /* and the number of that head; 0: none */
    bool torn;         /* a write failed half way, and so did taking it back */
    bool unsynced;     /* written to since the last sync */
    bool made;         /* a new file was made since the last sync */
    /* The last head that is being synced, and the last that was. The top chain may note only the
     * durable one: after a power cut it must not know of more than there is. */
    struct audit_head syncing, durable;
};
struct audit_writer {
    const struct audit_limits *limits;
    const struct audit_signer *signer;
    uint64_t *seq; /* shared by all chains */
};
/* Opens a chain and finds its end. The folder of the tenant must be there. *seq becomes the highest
 * number. */
int audit_chain_open(int top, const char *tenant, struct map *table, uint64_t *seq,
                     struct audit_chain **ret, struct sg_error *e);
void audit_chain_free(struct audit_chain *c);
/* Writes the records that wait. head: also signs a head at the end, if there is none yet. */
int audit_chain_flush(struct audit_chain *c, const struct audit_writer *w, bool head);
/* Closes files that are not needed now. */
void audit_chain_rest(struct audit_chain *c);

/* ---- sync.c ---------------------------------------------------------------------------------- */

struct audit_sync *audit_sync_new(const struct list *chains);
/* In log.c: a sync was tried, with result r. */
void audit_synced(struct audit_log *log, int r);

/* ---- back.c ---------------------------------------------------------------------------------- */

/* Every whole line of a chain, the newest first. */
struct audit_back {
    int dir;
    uint64_t below; /* files that begin with this number or a higher one are skipped; 0: none */
    uint32_t *files;
    size_t n;    /* files that were not begun */
    int64_t end; /* where the unread part of the current file, files[n], ends */
    char *buf;   /* the lines in [first, at) were not returned yet */
    char *first, *at;
};
int audit_back_open(struct audit_back *b, int dir, uint64_t below,
                    struct sg_error *e); /* takes dir */
void audit_back_done(struct audit_back *b);
/* Returns 1 and a line; 0: there are no more; or -errno. The line has no newline, and is valid
 * until the next call. */
int audit_back_next(struct audit_back *b, const char **ret, size_t *ret_len, struct sg_error *e);
