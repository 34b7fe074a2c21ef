/* What a sandbox was asked to be. It is the note that the warden keeps for the next front, as JSON
 * in memory, and is never written to disk: it holds the caller's variables and the access tokens.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/base/ids.h"

#define SPEC_NAME_MAX  128
#define SPEC_TOKEN_LEN 40

struct sandbox_spec {
    char tenant[ID_LEN + 1];
    char context[ID_LEN + 1];    /* whose sandbox it is; "" if of none */
    char checkpoint[ID_LEN + 1]; /* that it was made from, or went back to last; "" */
    uint64_t checkpoint_serial;  /* of the last one that there was then: later ones follow it */
    bool unfinished;             /* its kernels are not with their contexts yet: nobody has it */
    char goes_back[ID_LEN + 1];  /* the checkpoint that it is going back to just now; "" */
    char template_id[SPEC_NAME_MAX], alias[SPEC_NAME_MAX]; /* alias may be "" */
    json_t *metadata;                       /* object of strings, or NULL if none was given */
    json_t *envs;                           /* object of strings; never NULL */
    json_t *network;                        /* as given, validated; or NULL */
    int allow_internet;                     /* -1 not said, 0, 1 */
    bool network_said;                      /* either was given; not in the note */
    json_t *secrets;                        /* array, as the guard reads it, sealed; or NULL */
    json_t *agents;                         /* array: hosted agents that run in it; or NULL */
    char envd_token[SPEC_TOKEN_LEN + 1];    /* "" if not secured */
    char traffic_token[SPEC_TOKEN_LEN + 1]; /* "" if ports are public */
    bool auto_pause, auto_pause_memory, auto_resume;
    bool interpreter;               /* its template is for code: a kernel is started with it */
    uint64_t timeout_ms;            /* the last one given: what auto-resume uses */
    int64_t created_ms, started_ms; /* wall clock; started changes on resume */
    struct sg_limits limits;
};

void sandbox_spec_init(struct sandbox_spec *s);
void sandbox_spec_done(struct sandbox_spec *s);
/* A sealed memfd with the note. */
int sandbox_spec_save(const struct sandbox_spec *s, struct sg_error *e);
int sandbox_spec_load(int memfd, struct sandbox_spec *ret, struct sg_error *e);
/* SPEC_TOKEN_LEN hexadecimal digits from the kernel's generator. */
void token_random(char ret[SPEC_TOKEN_LEN + 1]);
bool token_equal(const char *a, const char *b); /* in constant time for equal lengths */
