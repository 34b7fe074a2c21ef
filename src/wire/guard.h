/* The messages to and from the guard: the process through which everything goes that leaves a
 * sandbox (guard/guard.h). Two sockets, both SOCK_SEQPACKET.
 *
 *   warden                                   guard
 *     GUARD_SETTINGS + 3 memfds ---------->    settings, more roots (PEM), more patterns, as text
 *                                              (the last two may be empty); again after SIGHUP
 *     GUARD_FRONT + socket --------------->    its socket to the front; again for each new front
 *     GUARD_SANDBOX + tcp, udp, document ----->    a sandbox, with its listeners and its policy
 *     GUARD_POLICY + document ------------>    another policy for it
 *         <------------------------------- GUARD_APPLIED: it is in force, or why not
 *     GUARD_GONE ------------------------->    the sandbox has ended
 *         <------------------------------- GUARD_ASK_UDP: a socket, please
 *     GUARD_UDP + socket ----------------->    the same seq
 *         <------------------------------- GUARD_READY: settings are read, sandboxes are served
 *     GUARD_BEAT ------------------------->    answered with the same
 * (warden/processes/heartbeat.h)
 *
 * The listeners are made by the warden inside the sandbox's network namespace
 * (warden/host/netpath.h) and belong to it: a guard that ends is replaced, gets all of them again,
 * and finds what came meanwhile waiting in them. Nothing is lost but the connections that were
 * open, and what fake addresses stand for until the names are asked for again. With no guard there,
 * nobody accepts: nothing leaves.
 *
 * A sandbox whose policy lets nothing out has no listeners, no route and is not told of.
 *
 * The guard trusts the warden, and the warden checks what the guard asks: a guard that was taken
 * over can get sockets inside sandboxes it was told of, and nothing else.
 *
 *   front                                    guard
 *     ASK_... (seq), payload ------------->    answered with the same seq, in any order
 */
#pragma once

#include <netinet/in.h>

#include "lib/base/ids.h"

#define GUARD_MAGIC        0x73676731u /* "sgg1" */
#define GUARD_DOCUMENT_MAX (1024u * 1024)

/* How connections of a sandbox come to its listeners. */
enum egress_path { PATH_SK_LOOKUP = 1, PATH_TPROXY, PATH_REDIRECT, PATH_MAX_ };

/* A guard that the library has started, for the sandboxes of one program: their documents may have
 * the values of secrets as they are. They come from who knows them, by the one socket, and are
 * nowhere else. The guard of a server takes sealed ones only. */
#define GUARD_OF_ONE_CALLER 1

enum guard_what {
    /* descriptors: memfds: settings, egress_roots, sanitise_patterns. code: GUARD_OF_ONE_CALLER, or
     * 0 */
    GUARD_SETTINGS = 1,
    GUARD_FRONT,   /* descriptor: socket */
    GUARD_SANDBOX, /* id, tenant, life, epoch, path; descriptors: tcp, udp, document */
    GUARD_POLICY,  /* id, life, epoch; descriptor: document */
    GUARD_APPLIED, /* id, life, epoch, code, message */
    GUARD_GONE,    /* id, life */
    GUARD_ASK_UDP, /* id, life, seq, local, peer */
    GUARD_UDP,     /* seq, code; descriptor: socket, unless code < 0 */
    GUARD_READY,
    GUARD_BEAT,
    GUARD_FAILED, /* message: it cannot start, and ends */
    GUARD_MAX_
};

struct guard_message {
    uint32_t magic, what;
    uint64_t seq;
    uint64_t life;  /* of one instance: an id can have several, one after the other */
    uint64_t epoch; /* of the policy: grows with each change */
    int32_t code;   /* 0 or -errno */
    uint32_t path;  /* enum egress_path */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    /* A connected socket: as if `local` had sent what it sends to `peer`, which is inside. Either
     * both are IPv4 or both IPv6. */
    struct sockaddr_storage local, peer;
    char message[256];
};

/* ---- between front and guard ----------------------------------------------------------------- */

#define GUARD_PAYLOAD_MAX (48u * 1024)
#define GUARD_PUBLIC_LEN  32 /* lib/vault/vault.h */

enum ask_what {
    ASK_PUBLIC = 1, /* answer: GUARD_PUBLIC_LEN bytes: seals what only the guard can read */
    /* id; payload: {"names": [...]}, the domains that are to be inspected. Answer: JSON {"pem": its
     * certificate, "hash": the name that OpenSSL looks for it under}. */
    ASK_CA,
    /* tenant; payload: JSON, a filter (lib/audit/audit.h). Answer: descriptor of a memfd, JSON
     * {"records": [...], "next": cursor or null}. */
    ASK_AUDIT,
    /* id, tenant; payload: JSON object with "kind" and what is to be on record. No answer. */
    ASK_RECORD,
    /* Answer: JSON {"process": {cpuSeconds, residentBytes, openFds, maxFds, startedMs},
     * "sanitised": {kind: n}, "dns": {verdict: n}}: what the guard counts, so far. */
    ASK_FIGURES,
    /* Not asked for (seq 0), guard to front: connections that ended or were refused since the last
     * one, as an array of struct egress_news. Gathered for EGRESS_NEWS_MS; what does not fit is
     * left out but for its bytes, which the next of the same sandbox has. */
    ASK_NEWS,
    ASK_MAX_
};

#define EGRESS_NEWS_MS 100

enum egress_verdict { VERDICT_ALLOWED = 1, VERDICT_BLOCKED, VERDICT_FAILED, VERDICT_MAX_ };

struct egress_news {
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    uint8_t verdict;  /* enum egress_verdict; failed: allowed, and the other side was not there */
    char protocol[7]; /* "tcp", "udp", "dns", "http": a request that a rule refused */
    char target[128]; /* the name if one is known, else the address; cut */
    char why[64];     /* the rule, as the record has it */
    uint16_t port;
    uint32_t took_ms;
    uint64_t up, down; /* bytes out of the sandbox and into it */
    int64_t ended_ms;  /* wall clock */
};

struct ask {
    uint32_t magic, what;
    uint64_t seq;
    int32_t code; /* of an answer: 0 or -errno, and then the payload is the message */
    uint32_t len; /* of the payload, which follows in the same message */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
};
