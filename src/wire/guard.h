/* The messages to and from the guard: the process that everything goes through that leaves a
 * sandbox (guard/guard.h). The guard has two sockets, both SOCK_SEQPACKET.
 *
 *   warden                                    guard
 *     GUARD_SETTINGS + 3 memfds ----------->    settings, more roots (PEM), more patterns, as text
 *                                               (the last two may be empty); again after SIGHUP
 *     GUARD_FRONT + socket ---------------->    its socket to the front; again for each new front
 *     GUARD_SANDBOX + tcp, udp, document -->    a sandbox, with its listeners and its policy
 *     GUARD_POLICY + document ------------->    another policy for it
 *         <-------------------------------- GUARD_APPLIED: the policy is in force, or why not
 *     GUARD_GONE -------------------------->    the sandbox has ended
 *         <-------------------------------- GUARD_ASK_UDP: asks for a socket inside a sandbox
 *     GUARD_UDP + socket ------------------>    that socket, with the same seq
 *         <-------------------------------- GUARD_READY: settings are read, sandboxes are served
 *     GUARD_BEAT -------------------------->    answered with the same
 *                                               (warden/processes/heartbeat.h)
 *
 * The warden makes the listeners inside the sandbox's network namespace (warden/host/netpath.h) and
 * keeps them. So a new guard gets the listeners of the old one, with all connections that came
 * meanwhile still waiting in them. A guard's end loses only the connections that were open, and the
 * names that fake addresses stand for, until the sandbox asks for these names again. While there is
 * no guard nobody accepts, so nothing leaves.
 *
 * A sandbox whose policy lets nothing out has no listeners and no route, and the guard does not
 * hear of it.
 *
 * The guard trusts the warden, but the warden checks what the guard asks: a guard that was taken
 * over can get sockets inside the sandboxes that it was told of, and nothing else.
 *
 *   front                                     guard
 *     ASK_... (seq), payload -------------->    answered with the same seq, in any order */
#pragma once

#include <netinet/in.h>

#include "lib/base/ids.h"

#define GUARD_MAGIC        0x73676731u /* "sgg1" */
#define GUARD_DOCUMENT_MAX (1024u * 1024)

/* By which mechanism of Linux a sandbox's connections reach its listeners. */
enum egress_path { PATH_SK_LOOKUP = 1, PATH_TPROXY, PATH_REDIRECT, PATH_MAX_ };

/* Marks a guard that the library has started, for the sandboxes of one program. Its policy
 * documents may hold secrets unsealed: the program that knows them sends them over the one socket,
 * and they are nowhere else. The guard of a server takes sealed secrets only. */
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
    uint64_t life;  /* names one instance: an id can have several, one after the other */
    uint64_t epoch; /* of the policy: grows with each change */
    int32_t code;   /* 0 or -errno */
    uint32_t path;  /* enum egress_path */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    /* The ends of a connected socket that the guard asks for. It sends as `local`, to `peer`, which
     * is inside the sandbox. Both are IPv4, or both IPv6. */
    struct sockaddr_storage local, peer;
    char message[256];
};

/* ---- between front and guard ----------------------------------------------------------------- */

#define GUARD_PAYLOAD_MAX (48u * 1024)
#define GUARD_PUBLIC_LEN  32 /* lib/vault/vault.h */

enum ask_what {
    ASK_PUBLIC = 1, /* answer: GUARD_PUBLIC_LEN bytes, a key: only the guard can open what it
                     * seals */
    /* id; payload: {"names": [...]}, the domains that are to be inspected. Answer: JSON {"pem": the
     * sandbox's CA certificate, "hash": the file name that OpenSSL looks for}. */
    ASK_CA,
    /* tenant; payload: JSON, a filter (lib/audit/audit.h). Answer: descriptor of a memfd, JSON
     * {"records": [...], "next": cursor or null}. */
    ASK_AUDIT,
    /* id, tenant; payload: JSON object with "kind" and the fields to put on record. No answer. */
    ASK_RECORD,
    /* Answer: JSON {"process": {cpuSeconds, residentBytes, openFds, maxFds, startedMs},
     * "sanitised": {kind: n}, "dns": {verdict: n}}: the guard's counters since it started. */
    ASK_FIGURES,
    ASK_KEYS, /* answer: JSON {"keys": [{"kid", "x", "y", "until": seconds}]}: the public keys (P-256)
               * that tokens are checked with, each with the time until which it is published */
    /* The guard sends this unasked (seq 0): the connections that ended or were refused since the
     * last message, as an array of struct egress_news. The guard gathers for EGRESS_NEWS_MS. It
     * leaves out connections that do not fit, and adds their bytes to the next entry of the same
     * sandbox. */
    ASK_NEWS,
    ASK_MAX_
};

#define EGRESS_NEWS_MS 100

enum egress_verdict { VERDICT_ALLOWED = 1, VERDICT_BLOCKED, VERDICT_FAILED, VERDICT_MAX_ };

struct egress_news {
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
    uint8_t verdict;  /* enum egress_verdict; failed: allowed, but the other side did not answer */
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
    int32_t code; /* in an answer: 0, or -errno with a message as payload */
    uint32_t len; /* of the payload, which follows in the same message */
    char id[ID_LEN + 1], tenant[ID_LEN + 1];
};
