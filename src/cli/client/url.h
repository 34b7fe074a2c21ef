/* Pieces of URLs. */
#pragma once

#include "lib/text/strbuf.h"

/* Appends text with everything but letters, digits and "-._~" as %XX. */
void url_escape(struct strbuf *out, const char *text);
/* Appends "?key=value", or "&key=value" if the URL has a query already. */
void url_add_query(struct strbuf *url, const char *key, const char *value);
/* The filter of GET /v2/sandboxes for one pair, which the protocol wants escaped twice before it is
 * a value of the query. Pairs are joined by '&'. */
void url_add_pair(struct strbuf *filter, const char *key, size_t key_len, const char *value);
/* Letters, digits, '-' and '_': such a name needs no escape in a path or a host name. */
bool url_is_plain_name(const char *s);
