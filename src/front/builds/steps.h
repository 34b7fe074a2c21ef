/* The steps of a build, as a client sends them: checked, and what they mean for the steps after
 * them. Nothing here touches a sandbox. */
#pragma once

#include <jansson.h>

#include "front/store/templates.h"
#include "lib/text/strbuf.h"
#include "wire/agent.h"

#define STEPS_MAX      1000
#define STEPS_ARGS_MAX 10000 /* of all steps together */

enum step_type { STEP_RUN, STEP_COPY, STEP_ENV, STEP_WORKDIR, STEP_USER, STEP_MAX_ };

/* A step; its texts live as long as the JSON that it was read from. */
struct step {
    enum step_type type;
    const json_t *args; /* array of texts */
    const char *hash;   /* COPY: the upload; or "" */
    bool force;
};

/* The argument i; "" if there are fewer. */
const char *step_arg(const struct step *s, size_t i);
int step_read(const json_t *json, struct step *ret, struct sg_error *e);
/* Checks all steps at once. -EINVAL: the message names the first wrong one. */
int steps_check(const json_t *steps, struct sg_error *e);
/* A copy that has of each step what step_read reads, and nothing else that a client may have sent. The
 * steps have been checked. */
json_t *steps_copy(const json_t *steps);
/* The user and the directory of an image's config (JSON; NULL: it has none), as steps. */
json_t *steps_of_image(const char *config);
/* The step as people read it: "RUN echo hello". Cut if it is long. */
void step_text(const struct step *s, struct strbuf *out);

/* What the steps so far have set. */
struct step_state {
    char user[OPS_NAME_MAX + 1];
    char home[OPS_PATH_MAX];    /* of the user; "": not known, as only the sandbox knows it */
    char workdir[OPS_PATH_MAX]; /* "": the user's home */
    json_t *envs;               /* object of texts */
};
/* From the defaults of a template (front/core/defaults.h), or NULL. */
void step_state_init(struct step_state *s, const json_t *defaults);
void step_state_done(struct step_state *s);
/* The state as defaults, with these commands unless they are NULL. */
json_t *step_state_defaults(const struct step_state *s, const char *start, const char *ready);

/* home: "" if it is not known; those of "user" and "root" are. */
void step_state_user(struct step_state *s, const char *name, const char *home);

/* Carries out ENV, and the parts of USER and WORKDIR that need no sandbox: after USER the home may be
 * unknown, and the caller finds it out before the next step. */
int step_apply(const struct step *s, struct step_state *state, struct sg_error *e);
/* Replaces $NAME and ${NAME} by the variable's value, "" if there is none. A backslash keeps a $
 * as it is. Commands are not replaced: $( and ` have no meaning. */
void step_expand(const struct step_state *state, const char *text, struct strbuf *out);
/* Makes a path absolute: relative to the working directory, or to the home. A slash at the end
 * stays. -ENAMETOOLONG. */
int step_path(const struct step_state *state, const char *path, char ret[OPS_PATH_MAX],
              struct sg_error *e);

/* How a COPY unpacks its archive (OP_FILE_UNPACK). */
struct step_copy {
    char dest[OPS_PATH_MAX];
    char user[OPS_NAME_MAX + 1], group[OPS_NAME_MAX + 1]; /* group "": the user's */
    uint32_t mode, strip;
};
int step_copy(const struct step *s, const struct step_state *state, struct step_copy *ret,
              struct sg_error *e);

/* The key of what a build has after a step, for the cache: it depends on what was there before
 * (`below`), on the step, and on what it copies. */
void step_key(const char *below, const struct step *s, const char *digest,
              char ret[STORE_KEY_HEX + 1]);
/* The key of a base: the built-in template, or the layer of another one, and its defaults. */
void step_base_key(const char *base, const char *layer, const json_t *defaults,
                   char ret[STORE_KEY_HEX + 1]);
/* The key of an image that is fetched with these credentials, or with none. */
void step_image_key(const char *image, const json_t *credentials, char ret[STORE_KEY_HEX + 1]);
