/* What a sandbox may reach: from what its client asked for (sandbox_spec.network, allow_internet)
 * to the document that the guard reads (wire/policy_document.h), and what the sandbox needs to live
 * with it.
 *
 *   create, PUT network, a secret that changed --> document --> the warden (ORDER_CREATE,
 *   ORDER_POLICY) --> the guard
 *
 * A sandbox that nothing is allowed to has no document and no way out. One with rules or secrets
 * gets the certificate of its own CA, which the guard makes and whose key it keeps: into the bundle
 * of certificates, beside it for programs that look there, and named in the environment for those
 * that have their own.
 *
 * Secrets are in the spec as the guard reads them: sealed, with the placeholder that the sandbox
 * has in their place. */
#pragma once

#include "front/core/sandbox.h"

/* Before the spec is noted: secrets that variables and rules name are looked up, and variables get
 * placeholders. SG_ERR_INVALID names what is unknown. */
int egress_prepare(struct front *f, struct sandbox_spec *s, struct sg_error *e);
/* A copy of a sandbox's spec is another's: its variables name secrets again. */
void egress_forget_placeholders(struct sandbox_spec *s);
/* The document as a memfd in *ret_fd; -1: nothing goes out. */
int egress_document(struct front *f, const char *id, const struct sandbox_spec *s, int *ret_fd,
                    struct sg_error *e);
/* The certificate inside, if it has rules or secrets; done is called once, perhaps before this
 * returns. What fails is in the sandbox's log: its traffic is inspected nevertheless, and its
 * programs refuse the certificate. */
void egress_install(struct sandbox *b, void (*done)(void *arg), void *arg);
/* Variables of programs in it, as an object to be decref'ed; NULL if it needs none. */
json_t *egress_envs(const struct sandbox_spec *s);

/* Another network for a running sandbox; takes `network` over. Answered when it is in force. */
void sandbox_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg);
/* The policy that its spec has is put in force: of one that was made without. */
void sandbox_apply_network(struct sandbox *b, sandbox_done done, void *arg);
/* struct front's on_secret_changed: sandboxes that use it get its new value. */
void egress_secret_changed(struct front *f, const char *tenant, const char *name);
