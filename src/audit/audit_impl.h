/* What the files of audit/ share; audit.h is what others see.
 *
 *   record.c   a line: made from a record, and taken apart
 *   pending.c  records that are not written yet, folded if they are many
 *   sign.c     the key that signs heads
 *   rotate.c   the files: their names, which there are, the next one
 *   log.c      the one that writes
 *   query.c    reading backwards        verify.c   reading forwards, and believing nothing */
#pragma once

#include "audit/audit.h"

#define AUDIT_HASH_LEN 64 /* hexadecimal */
#define AUDIT_TIME_LEN 24 /* "2026-11-15T10:00:00.123Z" */
/* All texts of a record at their longest, each byte escaped, and what is around them. */
#define AUDIT_LINE_MAX 16384u

/* ---- record.c -------------------------------------------------------------------------------- */

/* Where the chain is: what the next line continues. */
struct audit_place {
    uint64_t seq, records;         /* so far; heads have a seq and are no records */
    uint64_t head_seq, since_head; /* the last head's; records after it */
    char hash[AUDIT_HASH_LEN + 1];
};
void audit_place_init(struct audit_place *p);

void audit_time_text(int64_t ms, char ret[AUDIT_TIME_LEN + 1]);

/* Append a line with its newline, and move the place on. */
struct audit_signer;
void audit_print_record(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint64_t count,
                        const struct audit_record *r);
void audit_print_head(struct strbuf *out, struct audit_place *p, int64_t time_ms, uint32_t file,
                      const struct audit_signer *signer);

/* A line's frame, which is always the same. Pointers into the line. */
struct audit_line {
    uint64_t seq;
    const char *time;       /* AUDIT_TIME_LEN */
    const char *prev;       /* AUDIT_HASH_LEN, as is hash */
    const char *hash;       /* of the first hashed bytes of the line */
    size_t hashed;          /* bytes that hash is of */
    const char *signature;  /* NULL: no head */
    size_t signature_len;   /* as base64 */
    size_t signed_len;      /* bytes that it is of */
    uint64_t records, file; /* of a head */
};
/* -EINVAL: it is no line of ours. line has no newline. */
int audit_line_read(const char *line, size_t len, struct audit_line *ret);
/* The value of a text field as it stands there, with escapes. NULL: there is none. It cannot be
 * fooled by the content of another: there, a quote has a backslash before it. */
const char *audit_line_text(const char *line, size_t len, const char *key, size_t *ret_len);
/* Of the line's beginning. */
void audit_hash_text(const char *line, size_t len, char ret[AUDIT_HASH_LEN + 1]);

/* ---- pending.c ------------------------------------------------------------------------------- */

struct audit_entry {
    struct audit_entry *next;  /* in order of time */
    struct audit_entry *chain; /* in the table */
    uint64_t key, count;
    int64_t time_ms;
    struct audit_record r; /* its texts follow */
};
#define AUDIT_BUCKETS 4096
struct audit_pending {
    struct audit_entry *first, **last;
    struct audit_entry *buckets[AUDIT_BUCKETS];
    size_t n;
    uint64_t seed;
};
void audit_pending_init(struct audit_pending *p);
void audit_pending_add(struct audit_pending *p, const struct audit_record *r, int64_t time_ms);
/* Frees the first n. */
void audit_pending_drop(struct audit_pending *p, size_t n);

/* ---- sign.c ---------------------------------------------------------------------------------- */

#define AUDIT_KEY_FILE    "head.key"
#define AUDIT_PUBLIC_FILE "head.pub"

/* Made, if the directory has none. */
int audit_signer_open(int dirfd, struct audit_signer **ret, struct sg_error *e);
void audit_signer_free(struct audit_signer *s); /* NULL is allowed; for checkers too */
/* Appends the signature as base64. */
void audit_sign(const struct audit_signer *s, const void *data, size_t len, struct strbuf *out);

/* The same with the public half alone. pem: NULL for the directory's own. */
int audit_checker_open(int dirfd, const char *pem, struct audit_signer **ret, struct sg_error *e);
bool audit_check(const struct audit_signer *s, const void *data, size_t len, const char *signature,
                 size_t signature_len);

/* ---- rotate.c -------------------------------------------------------------------------------- */

/* The numbers of the files that are there, ascending; to be freed. */
int audit_files(int dirfd, uint32_t **ret, size_t *ret_n, struct sg_error *e);
/* flags: of open(2). A regular file or nothing. Descriptor or -errno. */
int audit_file_open(int dirfd, uint32_t number, int flags);
void audit_file_name(uint32_t number, char *buf, size_t cap);
/* Removes files from *oldest on until `keep` of them are left, the last being `newest`. */
void audit_files_trim(int dirfd, uint32_t *oldest, uint32_t newest, uint32_t keep);

/* ---- query.c --------------------------------------------------------------------------------- */

/* Every whole line of every file, the newest first, until fn says false. first_seq_below: files
 * that begin with that or a higher number are skipped; 0: none. */
typedef bool (*audit_line_fn)(const char *line, size_t len, void *arg);
int audit_scan_back(int dirfd, uint64_t first_seq_below, audit_line_fn fn, void *arg,
                    struct sg_error *e);
