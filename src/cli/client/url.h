/* Pieces of URLs. */
#pragma once

#include "lib/text/strbuf.h"

/* Appends text with everything but letters, digits and "-._~" as %XX. */
void url_escape(struct strbuf *out, const char *text);
/* Appends "?key=value", or "&key=value" if the URL has a query already. NULL: appends nothing. */
void url_add_query(struct strbuf *url, const char *key, const char *value);
/* Appends one pair to the filter of GET /v2/sandboxes. The protocol wants pairs escaped twice
 * before the filter becomes a value of the query. Pairs are joined by '&'. */
void url_add_pair(struct strbuf *filter, const char *key, size_t key_len, const char *value);
/* Whether s has only letters, digits, '-' and '_': such a name needs no escape in a path or host
 * name. */
bool url_is_plain_name(const char *s);
