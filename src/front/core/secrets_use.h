/* How sandboxes come to the secrets of their tenant: never. What a policy document gets is each
 * secret as a sealed text that the guard alone can read, in two ways:
 *
 *   rules       a header's value mentions it (secret_text.h): the guard puts it in
 *   envs        a variable is a mention and nothing else: the sandbox gets a placeholder in its
 *               place, which the guard replaces in the headers and toward the hosts that the
 *               secret's own metadata names
 *
 * A placeholder is random, one for each sandbox and secret. */
#pragma once

#include "front/core/front.h"

#define SECRETS_MAX        32            /* of one sandbox */
#define SECRETS_SEALED_MAX (384u * 1024) /* together: a document has an end */

/* network and envs may be NULL; mentions in envs become placeholders, in place. *ret_secrets: the
 * array of the document (wire/policy_document.h), perhaps empty. SG_ERR_INVALID names the secret
 * that is not there or cannot be used so; envs then is to be thrown away. */
int secrets_gather(struct front *f, const char *tenant, const json_t *network, json_t *envs,
                   json_t **ret_secrets, struct sg_error *e);
