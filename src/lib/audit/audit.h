/* The record: one line of JSON for each decision of the guard about what leaves a sandbox, without
 * the content.
 *
 *   {"seq":17,"time":"2026-11-15T10:00:00.123Z","kind":"flow","tenant":...,"sandbox":...,
 *    "name":"a.test","address":"93.184.216.34","port":443,"protocol":"tcp","verdict":"allow",
 *    "rule":"allow a.test","up":812,"down":5120,"ms":31,"policy":"9f86d081884c7d65","count":1,
 *    "prev":"...","hash":"..."}
 *
 * `hash` is SHA-256 over the line up to it, and `prev`, which it covers, is the hash of the line
 * before. So verifying finds a line that was changed, left out or moved. A line of kind "head" has
 * the number of records, and is signed (Ed25519; the key is in the directory, the public one beside
 * it). A head comes every AUDIT_HEAD_RECORDS records, AUDIT_HEAD_NS after the last head if there
 * were records since, and at the beginning of each file. So verifying finds that the end was cut
 * off, if somebody has noted a head of it elsewhere; and nobody without the key can write the
 * record anew.
 *
 * Each tenant has a chain of its own, in a folder of its name, with files and limits of its own, so
 * that no tenant can push out the records of another. The folder above has the top chain, with
 * records that belong to no tenant. All chains share one sequence of numbers, so the numbers tell
 * the order; within one chain they have gaps. Verifying also finds that a chain was taken away
 * whole, or cut: once a minute, and at the beginning of each of its files, the top chain notes the
 * last heads of the others, {"kind":"chain","name":TENANT,"detail":"SEQ:HASH"}. So one head of the
 * top chain, noted elsewhere, vouches for all chains.
 *
 * Files are audit-NNNNNN.jsonl. When one is larger than the limit the next begins, with the last
 * hash of the one before. If there are more files than are to be kept, the oldest are removed.
 * Verifying begins with the oldest file that is there, whose first head has the number of records
 * before it. Text from outside (names, reasons) is escaped by the JSON writer and cut to
 * AUDIT_TEXT_MAX; there is no field for content, headers or values.
 *
 * Writing is buffered: audit_write only puts a record into memory; audit_flush writes, and is
 * called from a timer (100 ms) and at the end. The first of several equal refusals (same sandbox,
 * kind, rule, name, address, port) is written at once; those that follow within AUDIT_REPEAT_NS
 * become one more record, with their count. If a tenant has too many records at once
 * (AUDIT_PENDING_MAX), they are folded: equal ones become one with their count, whatever the
 * verdict. No denial is dropped without being counted.
 *
 * A written line may wait in the system's cache for a while. audit_sync_begin, audit_sync_run and
 * audit_sync_end make lines durable: the first and last are quick, the one between is for another
 * thread. A sync is due AUDIT_SYNC_NS after the last one, and at once when a secret was refused. */
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

/* A field that is NULL or 0 is not there. */
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
/* The limits of each chain. */
struct audit_limits {
    uint64_t file_bytes; /* a file is about this large */
    uint32_t files;      /* number of files to keep */
};

/* Opens the record, and goes on where the last file of each chain ends. If a crash cut the last
 * line, the line is removed, and a record says so. */
int audit_open(int dirfd, const struct audit_limits *limits, struct audit_log **ret,
               struct sg_error *e);
void audit_set_limits(struct audit_log *log, const struct audit_limits *limits);
void audit_write(struct audit_log *log, const struct audit_record *r);
/* Writes the pending records, and signs a head if it is time. Call it often: it does nothing if
 * nothing is due. 0, or -errno if the disk is full: the records stay pending, within the bound. */
int audit_flush(struct audit_log *log);
void audit_close(struct audit_log *log); /* flushes, with heads, and syncs */

/* The lines that were written since the last sync. NULL: a sync is not due, or there is nothing to
 * sync. One sync at a time. */
struct audit_sync;
struct audit_sync *audit_sync_begin(struct audit_log *log);
void audit_sync_run(struct audit_sync *s); /* waits for the disk; touches nothing else */
/* Frees s. 0, or -errno: the sync will be tried again. log NULL: the record is closed by now. */
int audit_sync_end(struct audit_log *log, struct audit_sync *s);

/* ---- reading: also while another process writes ---------------------------------------------- */

struct audit_filter {
    const char *tenant, *sandbox, *kind, *verdict, *name; /* NULL: any; name may be *.x */
    int64_t from_ms, to_ms;                               /* wall clock; 0: open */
    uint64_t before;                                      /* records with a seq below; 0: newest */
    uint32_t limit;                                       /* 0: until fn says false */
};
/* Calls fn for each record, the newest first, until fn says false. line has no newline. */
int audit_query(int dirfd, const struct audit_filter *f,
                bool (*fn)(const char *line, size_t len, uint64_t seq, void *arg), void *arg,
                struct sg_error *e);

struct audit_report {
    uint64_t records, first_seq, last_seq, heads; /* of all chains */
    uint64_t chains;                              /* chains of tenants */
    uint64_t removed;                             /* older records, removed by the limits */
    uint64_t unsigned_records;                    /* records after the last heads */
    uint64_t bad_seq;                             /* number of the first bad line; 0: none */
    char head[96];     /* last head of the top chain, "SEQ:HASH": note it elsewhere; "": none */
    char message[256]; /* why */
};
/* 0: the record is whole; -EBADMSG: it was tampered with, see the report. public_key: PEM text that
 * the caller trusts, or NULL for the directory's own. head: "SEQ:HASH" that was noted before and
 * must still be there, or NULL. */
int audit_verify(int dirfd, const char *public_key, const char *head, struct audit_report *ret,
                 struct sg_error *e);
