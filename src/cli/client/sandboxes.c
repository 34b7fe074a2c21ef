#include "cli/client/sandboxes.h"

#include "lib/command/ui.h"
#include "cli/client/api.h"
#include "cli/client/url.h"

int sandboxes_list(struct client *c, const struct sandboxes_filter *filter, struct json_t **ret,
                   struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf path = strbuf_upto(API_PATH_MAX);
    AUTO(strbuf_done) struct strbuf pairs = strbuf_upto(API_PATH_MAX);

    strbuf_addstr(&path, "/v2/sandboxes");
    url_add_query(&path, "state", filter->state ? filter->state : "running,paused");
    for (size_t i = 0; i < filter->n_pairs; i++) {
        const char *equals = strchr(filter->pairs[i], '=');

        url_add_pair(&pairs, filter->pairs[i], (size_t)(equals - filter->pairs[i]), equals + 1);
    }
    if (filter->n_pairs > 0)
        url_add_query(&path, "metadata", pairs.buf);
    if (path.truncated || pairs.truncated)
        return err_set(e, SG_ERR_LIMIT, -E2BIG, "--metadata: all together they are too long");
    return api_list(c, path.buf, ret, e);
}

int sandboxes_add_id(struct sandboxes_ids *ids, const char *id, struct sg_error *e)
{
    if (ids->n == SANDBOXES_IDS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "more than %d sandboxes", SANDBOXES_IDS_MAX);
    ids->v[ids->n++] = id;
    return client_check_id(id, e);
}

int sandboxes_each(struct client *c, const struct sandboxes_ids *ids, bool quiet,
                   int (*fn)(struct client *c, const char *id, void *arg, struct sg_error *e),
                   void *arg)
{
    int status = 0;

    for (size_t i = 0; i < ids->n; i++) {
        struct sg_error e;

        if (fn(c, ids->v[i], arg, &e) == 0) {
            if (!quiet)
                printf("%s\n", ids->v[i]);
            continue;
        }
        int failed = client_fail(&e);
        status = status ? status : failed;
    }
    return status;
}
