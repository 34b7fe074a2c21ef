/* How secrets appear in text: their names, the places that mention them, and the hosts that they
 * may go to.
 *
 * Tenants mention a secret as ${e2b.secrets.NAME}, as E2B's SDKs write it. The secret's own
 * metadata say where its placeholder is replaced:
 *
 *   sandglass.hosts     api.example.com, *.example.org
 *   sandglass.headers   authorization, x-api-key      (SECRET_HEADERS if not given)
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

#define SECRET_NAME_MAX     64
#define SECRET_MARK         "${e2b.secrets."
#define SECRET_HOSTS_KEY    "sandglass.hosts"
#define SECRET_HEADERS_KEY  "sandglass.headers"
#define SECRET_HEADERS      "authorization,x-api-key,api-key,x-goog-api-key"
#define SECRET_METADATA_MAX 8192 /* bytes of keys and values; E2B's limit */

/* Converts a name to its only form, lower case. -EINVAL: it is not a valid name. A name has 1 to
 * SECRET_NAME_MAX characters of [a-z0-9_-], and is neither an id ("sec_...") nor reserved for the
 * server. */
int secret_name(const char *text, size_t len, char ret[SECRET_NAME_MAX + 1]);

struct secret_mention {
    const char *name; /* as written in the text */
    size_t len;
    const char *end; /* where the search for the next one begins */
};
/* Finds the first mention in a text; false if there is none. */
bool secret_mentioned(const char *text, struct secret_mention *ret);
/* Whether the text is one mention and nothing else. */
bool secret_mention_whole(const char *text, struct secret_mention *ret);

/* Checks a secret's metadata, an object of strings: its size, and the lists of hosts and
 * headers. */
int secret_metadata_check(const json_t *metadata, struct sg_error *e);
/* Return new arrays of lower-case strings, from metadata that were checked. Without hosts the array
 * is empty. */
json_t *secret_hosts(const json_t *metadata);
json_t *secret_headers(const json_t *metadata);
