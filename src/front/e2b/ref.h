/* How clients name templates and snapshots: [namespace/]name[:tag]. Letters become lower case and
 * spaces around the parts are dropped, as E2B does it. */
#pragma once

#include "lib/base/err.h"
#include "front/store/store.h"

#define REF_DEFAULT_TAG "default"
#define REF_TEXT_MAX    (3 * STORE_NAME_MAX + 3)

struct template_ref {
    char space[STORE_NAME_MAX + 1]; /* "" if none was given */
    char name[STORE_NAME_MAX + 1];
    char tag[STORE_NAME_MAX + 1]; /* "default" if none was given */
    bool tagged;                  /* a tag was given */
};

int template_ref_parse(const char *text, struct template_ref *ret, struct sg_error *e);
/* If a namespace was given, it must be the tenant's own. */
int template_ref_own(const struct template_ref *ref, const char *tenant_name, struct sg_error *e);
/* "namespace/name" or "name" */
void template_ref_text(const struct template_ref *ref, char ret[REF_TEXT_MAX + 1]);
