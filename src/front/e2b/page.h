/* Pages of long lists: the limit of a request, and the token that names where the next page begins.
 *
 * A token is opaque to clients and made for one tenant and one list. It carries a mac, so that what
 * comes back is what was given out; the key is in the store, so it outlives a restart. */
#pragma once

#include "lib/base/ids.h"
#include "front/e2b/request.h"

#define PAGE_MAX       100
#define PAGE_KEY_LEN   32
#define PAGE_TOKEN_LEN 128 /* at most */

enum page_list { PAGE_SANDBOXES = 1, PAGE_SNAPSHOTS, PAGE_SECRETS };

/* After the element with this place and id. */
struct page_cursor {
    int64_t at;
    char id[ID_LEN + 1]; /* may be "" */
    enum page_list list;
    bool ascending;
};

void page_token_make(const unsigned char key[PAGE_KEY_LEN], const char *tenant,
                     const struct page_cursor *c, char ret[PAGE_TOKEN_LEN + 1]);
/* -EINVAL: not one of ours, or not for this tenant, list and order. */
int page_token_read(const unsigned char key[PAGE_KEY_LEN], const char *tenant, enum page_list list,
                    bool ascending, const char *token, struct page_cursor *ret);

struct page {
    unsigned limit;
    bool has_cursor;
    struct page_cursor cursor;
};

/* From the query's `limit` and `nextToken`. False: answered 400. */
bool page_of_request(struct e2b_req *q, enum page_list list, bool ascending, struct page *ret);
/* The header that names the next page. */
void page_next(struct e2b_req *q, const struct page_cursor *last);
