/* Which hosts a sandbox may reach. This part turns the client's request (sandbox_spec.network,
 * allow_internet) into the policy document that the guard reads (wire/policy_document.h), and gives
 * the sandbox what it needs to live with that policy.
 *
 *   create, PUT network, a changed secret --> document --> ORDER_CREATE or ORDER_POLICY
 *                                                      --> warden --> guard
 *
 * A sandbox that may reach nothing has no document and no way out. A sandbox with rules or secrets
 * has a CA of its own: the guard makes it and keeps its key. The certificate is put into the
 * sandbox's bundle of certificates, into a file of its own beside the bundle, and is named in the
 * environment for programs that bring their own bundle.
 *
 * The spec holds secrets as the guard reads them: sealed, each with the placeholder that the
 * sandbox sees in its place. */
#pragma once

#include "front/core/sandbox.h"

/* Called before the spec is saved as a note: looks up the secrets that variables and rules name,
 * and puts placeholders into the variables. SG_ERR_INVALID names a secret that is unknown. */
int egress_prepare(struct front *f, struct sandbox_spec *s, struct sg_error *e);
/* For a spec that was copied from another sandbox: its variables name their secrets again, instead
 * of the other sandbox's placeholders. */
void egress_forget_placeholders(struct sandbox_spec *s);
/* Writes the policy document to a memfd, *ret_fd; -1 if the sandbox may reach nothing. */
int egress_document(struct front *f, const char *id, const struct sandbox_spec *s, int *ret_fd,
                    struct sg_error *e);
/* Installs the CA's certificate in the sandbox if it has rules or secrets. done is called once,
 * perhaps before this returns. A failure is written to the sandbox's log and nowhere else: its
 * traffic is still inspected, and its programs will refuse the certificate. */
void egress_install(struct sandbox *b, void (*done)(void *arg), void *arg);
/* The variables that name the certificate, for programs in the sandbox: an object to be decref'ed,
 * or NULL if the sandbox needs none. */
json_t *egress_envs(const struct sandbox_spec *s);

/* Gives a running sandbox another network, and takes `network` over. done is called when the
 * network is in force. */
void sandbox_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg);
/* Puts the policy of the sandbox's spec in force, for a sandbox that was made without one. */
void sandbox_apply_network(struct sandbox *b, sandbox_done done, void *arg);
/* The handler for struct front's on_secret_changed: sandboxes that use the secret get its new
 * value. */
void egress_secret_changed(struct front *f, const char *tenant, const char *name);
