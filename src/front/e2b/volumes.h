/* The routes of volumes that need a key. Their contents have a token of their own:
 * front/volumes/content.h. */
#pragma once

#include "front/store/store.h"
#include "lib/http/http.h"

#define VOLUME_NAME_RULE "a volume's name has 1 to 64 letters, digits, '-' and '_'"
bool volume_name_valid(const char *name);

void volume_post(struct http_req *req);
void volumes_list(struct http_req *req);
void volume_get(struct http_req *req);
void volume_remove(struct http_req *req);
