/* Pages of long lists: the limit of a request, and the token that names where the next page begins.
 *
 * A token is opaque to clients, and valid for one tenant and one list. It carries a MAC, so that
 * clients can only send back tokens that the server gave out. The MAC's key is in the store, so
 * tokens outlive a restart. */
#pragma once

#include "lib/base/ids.h"
#include "front/e2b/request.h"

#define PAGE_MAX       100
#define PAGE_KEY_LEN   32
#define PAGE_TOKEN_LEN 128 /* at most */

enum page_list { PAGE_SANDBOXES = 1, PAGE_SNAPSHOTS, PAGE_SECRETS };

/* A page begins after the element with this place and id. */
struct page_cursor {
    int64_t at;
    char id[ID_LEN + 1]; /* may be "" */
    enum page_list list;
    bool ascending;
};

void page_token_make(const unsigned char key[PAGE_KEY_LEN], const char *tenant,
                     const struct page_cursor *c, char ret[PAGE_TOKEN_LEN + 1]);
/* -EINVAL: the token is not one of ours, or not for this tenant, list and order. */
int page_token_read(const unsigned char key[PAGE_KEY_LEN], const char *tenant, enum page_list list,
                    bool ascending, const char *token, struct page_cursor *ret);

struct page {
    unsigned limit;
    bool has_cursor;
    struct page_cursor cursor;
    unsigned n;              /* elements so far, for page_take */
    bool more;               /* there are elements that have no room */
    struct page_cursor last; /* the last element that has */
};

/* Reads `limit` and `nextToken` of the query. False: answered, perhaps with an earlier error in
 * q->in. */
bool page_of_request(struct e2b_req *q, enum page_list list, bool ascending, struct page *ret);
/* Of a list that the store reads: the place to begin after. */
int64_t page_from(const struct page *p);
/* Takes the next element, at this place. False: the page is full. */
bool page_take(struct page *p, int64_t at);
/* Ends the array, and answers with it. */
void page_reply(struct e2b_req *q, const struct page *p, struct json *j);
/* Adds the header that names the next page. */
void page_next(struct e2b_req *q, const struct page_cursor *last);
