/* The record: one line of JSON for each decision about what leaves a sandbox, without the content.
 *
 *   {"seq":17,"time":"2026-11-15T10:00:00.123Z","kind":"flow","tenant":...,"sandbox":...,
 *    "name":"a.test","address":"93.184.216.34","port":443,"protocol":"tcp","verdict":"allow",
 *    "rule":"allow a.test","up":812,"down":5120,"ms":31,"policy":"9f86d081884c7d65","count":1,
 *    "prev":"...","hash":"..."}
 *
 * `hash` is SHA-256 over the line up to it, which has the hash before it in `prev`: a line that is
 * changed, left out or moved is found. Every AUDIT_HEAD_RECORDS records, AUDIT_HEAD_NS after the
 * last one if there were any, and at the beginning of each file comes a line of kind "head" with
 * the number of records, signed (Ed25519; the key is in the directory, the public one beside it):
 * what is cut off after a head that somebody has seen is found, and a log that was written anew is
 * not ours.
 *
 * Each tenant has a chain of its own, in a folder of its name, with files and limits of its own:
 * none can push out what is on record of another. The folder above has one more, with what is of no
 * tenant. Numbers are given out over all chains, so they tell the order; within one they have gaps.
 * That a chain was taken away whole, or cut, is found as well: once a minute, and at the beginning
 * of each file, the chain above notes where the others are, {"kind":"chain","name":TENANT,
 * "detail":"SEQ:HASH"} of their last heads. So one head of the chain above, noted elsewhere,
 * vouches for all.
 *
 * Files are audit-NNNNNN.jsonl; when one is larger than the limit the next begins, with the last
 * hash of the one before; the oldest are removed beyond the number kept, and verifying begins with
 * the oldest that is there, whose first head has the number of records before it. Text from outside
 * (names, reasons) is escaped by the JSON writer and cut to AUDIT_TEXT_MAX; there is no field for
 * content, headers or values.
 *
 * Writing is buffered: audit_write never blocks on more than memory; audit_flush writes and is
 * called from a timer (100 ms) and at the end. A refusal is written at once, equal ones (same
 * sandbox, kind, rule, name, address, port) that come within AUDIT_REPEAT_NS are one more, with
 * their count. Too many records of a tenant in a moment (AUDIT_PENDING_MAX) are folded: equal ones
 * become one with their count, whatever the verdict, and a denial is never dropped without one.
 *
 * Disks keep what was written for a while. audit_sync_begin, audit_sync_run and audit_sync_end make
 * it durable: the first and last are quick, the one between is for another thread. It is due
 * AUDIT_SYNC_NS after the last time, and at once when a secret was refused. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/text/strbuf.h"

#define AUDIT_TEXT_MAX     255
#define AUDIT_HEAD_RECORDS 1000
#define AUDIT_HEAD_NS      60000000000ull
#define AUDIT_PENDING_MAX  8192 /* of one tenant */
#define AUDIT_REPEAT_NS    1000000000ull
#define AUDIT_SYNC_NS      1000000000ull
#define AUDIT_PAGE_MAX     1000

/* NULL and 0 mean: not there. */
struct audit_record {
    const char *kind; /* flow, dns, request, policy, secret, sanitise, quota, start, chain */
    const char *tenant, *sandbox;
    const char *name, *address; /* as text */
    const char *protocol;       /* tcp, udp, tls, http, dns */
    const char *verdict;        /* allow, deny, report */
    const char *rule;           /* which entry or check decided */
    const char *detail;         /* a secret's name, kinds and counts found; never content */
    const char *policy;         /* short hash of the document */
    uint16_t port;
    uint64_t up, down, ms;
};

struct audit_log;
/* Of each chain. */
struct audit_limits {
    uint64_t file_bytes; /* a file is about this large */
    uint32_t files;      /* that are kept */
};

/* Goes on where the last file of each chain ends; a last line that a crash cut is cut off, on
 * record. */
int audit_open(int dirfd, const struct audit_limits *limits, struct audit_log **ret,
               struct sg_error *e);
void audit_set_limits(struct audit_log *log, const struct audit_limits *limits);
void audit_write(struct audit_log *log, const struct audit_record *r);
/* Writes what is pending; signs a head if it is time. Call it often: it does nothing if there is
 * nothing. 0, or -errno if the disk is full: the records stay pending, within the bound. */
int audit_flush(struct audit_log *log);
void audit_close(struct audit_log *log); /* flushes, with heads, and syncs */

/* What was written since the last time, if it is time; NULL: it is not, or there is nothing. One at
 * a time. */
struct audit_sync;
struct audit_sync *audit_sync_begin(struct audit_log *log);
void audit_sync_run(struct audit_sync *s); /* waits for the disk; touches nothing else */
/* Frees it. 0, or -errno: it will be tried again. log NULL: it is closed by now. */
int audit_sync_end(struct audit_log *log, struct audit_sync *s);

/* ---- reading: also while another process writes ---------------------------------------------- */

struct audit_filter {
    const char *tenant, *sandbox, *kind, *verdict, *name; /* NULL: any; name may be *.x */
    int64_t from_ms, to_ms;                               /* wall clock; 0: open */
    uint64_t before;                                      /* records with a seq below; 0: newest */
    uint32_t limit;                                       /* 0: until fn says false */
};
/* Newest first, until fn says false. line has no newline. */
int audit_query(int dirfd, const struct audit_filter *f,
                bool (*fn)(const char *line, size_t len, uint64_t seq, void *arg), void *arg,
                struct sg_error *e);

struct audit_report {
    uint64_t records, first_seq, last_seq, heads; /* of all chains */
    uint64_t chains;                              /* that tenants have */
    uint64_t removed;                             /* older records, by the limits */
    uint64_t unsigned_records;                    /* after the last heads */
    uint64_t bad_seq;                             /* where it breaks; 0: nowhere */
    char head[96];     /* the last of the chain above, "SEQ:HASH": to be noted; "": there is none */
    char message[256]; /* why */
};
/* 0: whole; -EBADMSG: it was tampered with, see the report. public_key: PEM text that the caller
 * trusts, or NULL for the directory's own. head: "SEQ:HASH" that was noted before and must still be
 * there, or NULL. */
int audit_verify(int dirfd, const char *public_key, const char *head, struct audit_report *ret,
                 struct sg_error *e);
