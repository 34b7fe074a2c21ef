/* Names of images, as Docker reads them:
 *
 *   reference  = [host [":" port] "/"] path [":" tag] ["@" digest]
 *   path       = component *("/" component)     each of a-z 0-9, with one of . _ __ or dashes between
 *   tag        = [A-Za-z0-9_] followed by at most 127 of [A-Za-z0-9_.-]
 *
 * What stands before the first slash is a host if it has a dot, a colon or a capital letter in it,
 * or is "localhost". Without a host it is Docker Hub's, where a path of one component is below
 * "library/". Without tag and digest it is the tag "latest"; with both, the digest counts. */
#pragma once

#include "pull/digest.h"

#define REFERENCE_NAME_MAX 255 /* of host and path together */
#define REFERENCE_TAG_MAX  128

struct reference {
    char host[REFERENCE_NAME_MAX + 1]; /* where the registry is: with its port, if it has one */
    char path[REFERENCE_NAME_MAX + 1 + sizeof("library/")];
    char tag[REFERENCE_TAG_MAX + 1]; /* "" if there is a digest */
    struct digest digest;
};

int reference_parse(const char *text, struct reference *ret, struct sg_error *e);
/* HOST[:PORT] alone, without brackets closed the wrong way, users or paths. */
bool reference_host_valid(const char *text, size_t len);
/* Whether two texts are the same, or name the same image. */
bool reference_same(const char *a, const char *b);
/* What manifests are asked by: the digest, or the tag. */
const char *reference_version(const struct reference *r);
