/* The spec of a sandbox: what its client asked for. The warden keeps it for the next front, as a
 * note (JSON, in memory). It is never written to disk, since it holds the client's variables and
 * the access tokens. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/ids.h"
#include "lib/base/uuid.h"

#define SPEC_NAME_MAX  128
#define SPEC_TOKEN_LEN 40

struct sandbox_spec {
    char tenant[ID_LEN + 1];
    char context[ID_LEN + 1];    /* whose sandbox it is; "": no context's */
    char checkpoint[ID_LEN + 1]; /* made from this, or last rewound to; "" */
    uint64_t checkpoint_serial;  /* the newest at that time; later ones follow it */
    bool unfinished;             /* kernels are not with their contexts yet: nobody uses it */
    char goes_back[ID_LEN + 1];  /* the checkpoint of a rewind under way; "" */
    char template_id[SPEC_NAME_MAX], alias[SPEC_NAME_MAX]; /* alias may be "" */
    char build_id[UUID_LEN + 1];            /* of the template, as E2B names builds; or "" */
    json_t *metadata;                       /* object of strings; NULL: none was given */
    json_t *envs;                           /* object of strings; never NULL */
    json_t *network;                        /* as the client gave it, validated; or NULL */
    int allow_internet;                     /* 0, 1; -1: not given */
    bool network_said;                      /* one of these two was given; not in the note */
    json_t *secrets;                        /* array for the guard, sealed; or NULL */
    json_t *tokens;                         /* object: audiences by names; or NULL */
    json_t *volumes;                        /* array: volumes.h; or NULL */
    json_t *agents;                         /* array of hosted agents in it; or NULL */
    char envd_token[SPEC_TOKEN_LEN + 1];    /* "" if not secured */
    char traffic_token[SPEC_TOKEN_LEN + 1]; /* "" if ports are public */
    bool auto_pause, auto_pause_memory, auto_resume;
    bool interpreter;    /* its template is for code: a kernel starts with it */
    bool gateway;        /* its template is for MCP: it has the program `mcp-gateway` */
    bool build;          /* a template is built in it: it goes with this front */
    bool standby;        /* it waits for its owner (standby.h): it goes with this front */
    json_t *defaults;    /* of its template (defaults.h), or NULL */
    uint64_t timeout_ms; /* the last one given; auto-resume uses it */
    int64_t created_ms, started_ms; /* wall clock; a resume changes started_ms */
    struct sg_limits limits;
};

void sandbox_spec_init(struct sandbox_spec *s);
void sandbox_spec_done(struct sandbox_spec *s);
/* Returns a sealed memfd with the note. */
int sandbox_spec_save(const struct sandbox_spec *s, struct sg_error *e);
int sandbox_spec_load(int memfd, struct sandbox_spec *ret, struct sg_error *e);
/* Processors and MiB as E2B counts them: whole numbers, never 0. */
uint32_t spec_cpus(const struct sg_limits *l);
uint64_t spec_mib(uint64_t bytes);
/* Fills ret with SPEC_TOKEN_LEN random hexadecimal digits from the kernel's generator. */
void token_random(char ret[SPEC_TOKEN_LEN + 1]);
bool token_equal(const char *a, const char *b); /* in constant time for equal lengths */
