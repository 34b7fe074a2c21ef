/* Everything that a sandbox can start from: the templates that come with the server, those that the
 * tenant has built, and its snapshots. */
#pragma once

#include "front/e2b/ref.h"
#include "front/e2b/request.h"
#include "front/store/templates.h"

#define TEMPLATE_INTERPRETER "code-interpreter-v1"
#define TEMPLATE_BASE        "base"

struct template_found {
    char id[ID_LEN + 1];
    char alias[STORE_NAME_MAX + 1]; /* "" if the template has none */
    char base[STORE_NAME_MAX + 1];  /* the built-in template that it was made from */
    char snapshot[ID_LEN + 1];      /* its layer; "": the plain files of the base */
    char owner[STORE_NAME_MAX + 1]; /* the tenant's name; "": it comes with the server */
    bool public;                    /* everybody may use it */
    bool foreign;                   /* it is another tenant's */
    int64_t created_ms, updated_ms;
    /* Of one that was built; "" and 0 otherwise. */
    char build[STORE_BUILD_LEN + 1];
    uint32_t cpus, memory_mib;
};

/* -ENOENT, with E2B's message, also for another tenant's template. */
int template_find(struct store *s, const struct store_tenant *tenant,
                  const struct template_ref *ref, struct template_found *ret, struct sg_error *e);
/* Gives a template that comes with the server the world that the setting `world` says: its files
 * are those, and no longer the host's. Others stay as they are. -ENOENT: there is no such world. */
int template_stand(struct front *f, struct template_found *t, struct sg_error *e);
/* Finds one that was built, and any of its builds: as above, but whatever its tag. */
int template_find_built(struct store *s, const struct store_tenant *tenant,
                        const struct template_ref *ref, struct store_template *ret,
                        struct sg_error *e);
/* What it gives to its sandboxes (front/core/defaults.h); NULL: nothing. */
int template_defaults(struct store *s, const struct template_found *t, json_t **ret,
                      struct sg_error *e);
/* Whether a template of this name comes with the server. */
bool template_is_builtin(const char *name);

/* "waiting", "building", "ready" or "error" */
const char *template_build_status(enum store_build_state state);
/* The UUID of a built-in template's build, or of a snapshot's: it follows from the id. */
void template_build_uuid(const char *id, char ret[STORE_BUILD_LEN + 1]);
int template_not_found(const struct template_ref *ref, struct sg_error *e);
/* Finds the template that the URL names. False: answered. */
bool template_of_path(struct http_req *req, const char *invalid, struct template_ref *ref,
                      struct template_found *ret);
/* The tenant's own template that the URL names, by id or name. False: answered. */
bool template_own_of_path(struct http_req *req, struct store_template *ret);
/* Reads a list of tags into one text, with spaces between. of: if it is not NULL, a tag may have a
 * template's name before it (NAME:TAG), and all have the same: its name, or "". */
void template_read_tags(struct fields *in, const char *field, struct template_ref *of,
                        struct strbuf *out);
/* An array of the texts in one, with spaces between. */
void template_put_texts(struct json *j, const char *texts);

/* Routes. */
void templates_list(struct http_req *req);
void template_get(struct http_req *req);
void template_alias(struct http_req *req);
void template_tags(struct http_req *req);
void template_tags_add(struct http_req *req);
void template_tags_remove(struct http_req *req);
void template_update(struct http_req *req);
void template_delete(struct http_req *req);
