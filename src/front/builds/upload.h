/* Archives that clients upload for builds: the files of COPY steps, and images.
 *
 * A client asks where to upload, and gets an address that carries the right for itself: the PUT
 * that follows brings no key.
 *
 *   /uploads/TENANT/HASH?expires=SECONDS&signature=HMAC-SHA256(secret, "TENANT/HASH/SECONDS")
 *
 * The hash is the client's word for what it uploads. It only finds the archive again, for the same
 * tenant; what the archive is, is said by the digest that is made while it comes. Archives are files
 * in the front's own directory, made aside and named in the store when they are whole. A tenant's
 * oldest make room for new ones. */
#pragma once

#include "front/core/front.h"
#include "front/store/templates.h"

#define UPLOAD_PREFIX  "/uploads/"
#define UPLOAD_URL_MAX 1024

/* Whether it is 64 hexadecimal digits in lower case. */
bool upload_hash_valid(const char *hash);
/* The address of the server is the one at which the request reached it. */
int upload_address(const struct http_req *req, const char *tenant, const char *hash,
                   char ret[UPLOAD_URL_MAX], struct sg_error *e);
/* Answers a request whose path begins with UPLOAD_PREFIX. */
void upload_request(struct http_req *req);
/* Returns a descriptor. -ENOENT: the file is not there, or not whole. */
int upload_open(struct store *s, const struct store_upload *u);
/* Removes files that the store does not name: an earlier front was killed while they came. */
void uploads_tidy(struct front *f);
