/* How sandboxes use the secrets of their tenant without ever having them. The policy document has
 * each secret as a sealed text that only the guard can read. There are two ways:
 *
 *   rules       a header's value mentions the secret (secret_text.h): the guard inserts it
 *   envs        a variable is one mention and nothing else: the sandbox gets a placeholder
 *               instead. The guard replaces the placeholder, only in the headers and only
 *               towards the hosts that the secret's own metadata name
 *
 * A placeholder is random, one for each sandbox and secret. */
#pragma once

#include "front/core/front.h"

#define SECRETS_MAX        32            /* of one sandbox */
#define SECRETS_SEALED_MAX (384u * 1024) /* together: documents have a size limit */

/* Gathers the secrets that network and envs mention; both may be NULL. Mentions in envs become
 * placeholders, in place. *ret_secrets is the array for the document (wire/policy_document.h),
 * perhaps empty. SG_ERR_INVALID names the secret that does not exist or cannot be used this way;
 * then the caller must throw envs away. */
int secrets_gather(struct front *f, const char *tenant, const json_t *network, json_t *envs,
                   json_t **ret_secrets, struct sg_error *e);
