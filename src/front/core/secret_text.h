/* What is written about a secret: its name, where others mention it, and where it may go.
 *
 * A tenant mentions a secret as ${e2b.secrets.NAME}, as E2B's SDKs write it. Where its placeholder
 * is replaced says the metadata of the secret itself:
 *
 *   sandglass.hosts     api.example.com, *.example.org
 *   sandglass.headers   authorization, x-api-key      (those of SECRET_HEADERS if it is not there)
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

#define SECRET_NAME_MAX     64
#define SECRET_MARK         "${e2b.secrets."
#define SECRET_HOSTS_KEY    "sandglass.hosts"
#define SECRET_HEADERS_KEY  "sandglass.headers"
#define SECRET_HEADERS      "authorization,x-api-key,api-key"
#define SECRET_METADATA_MAX 8192 /* bytes of keys and values, as E2B has it */

/* Brings a name to its one form, lower case. -EINVAL: it is none: 1 to SECRET_NAME_MAX of
 * [a-z0-9_-], and neither an id ("sec_...") nor a name that the server needs itself. */
int secret_name(const char *text, size_t len, char ret[SECRET_NAME_MAX + 1]);

struct secret_mention {
    const char *name; /* as it is written */
    size_t len;
    const char *end; /* where to look for the next */
};
/* The first that a text has; false: none. */
bool secret_mentioned(const char *text, struct secret_mention *ret);
/* Whether the text is a mention and nothing else. */
bool secret_mention_whole(const char *text, struct secret_mention *ret);

/* Checks metadata of a secret, which is an object of strings: how much there is of it, and what it
 * says about hosts and headers. */
int secret_metadata_check(const json_t *metadata, struct sg_error *e);
/* New arrays of strings, lower case, from metadata that was checked. No hosts: it is empty. */
json_t *secret_hosts(const json_t *metadata);
json_t *secret_headers(const json_t *metadata);
