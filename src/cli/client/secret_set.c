/* sandglass secret set: makes a secret, or gives one that is there a new value. */
#include <jansson.h>
#include <sys/prctl.h>

#include "lib/text/json.h"
#include "cli/client/api.h"
#include "cli/client/jr.h"
#include "cli/client/secret.h"
#include "cli/client/show.h"

#define BODY_MAX (SECRET_VALUE_MAX * 6 + 128 * 1024) /* with every byte of the value escaped */

/* Refuses a value that is not UTF-8: JSON cannot carry other bytes unchanged. */
static int check_text(const struct strbuf *value, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *text = json_stringn(value->buf, value->len);

    return text ? 0
                : err_invalid(e, "the value is not UTF-8: encode it first, such as with base64");
}

static void add_list(json_t *metadata, const char *key, const struct secret_list *l)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(BODY_MAX);

    if (l->n == 0)
        return;
    for (size_t i = 0; i < l->n; i++)
        strbuf_addf(&text, "%s%s", i > 0 ? "," : "", l->entries[i]);
    json_object_set_new(metadata, key, json_string(text.buf));
}

static void add_metadata(struct json *j, const struct secret_options *o, json_t *metadata)
{
    add_list(metadata, SECRET_KEY_HOSTS, &o->hosts);
    add_list(metadata, SECRET_KEY_HEADER, &o->headers);
    jw_object_begin(jw_key(j, "metadata"));
    for (void *at = json_object_iter(metadata); at; at = json_object_iter_next(metadata, at)) {
        jw_string(jw_key(j, json_object_iter_key(at)),
                  json_string_value(json_object_iter_value(at)));
    }
    jw_object_end(j);
}

/* Makes the body of a request. metadata NULL: left out. name NULL: the URL's path has the name. */
static void make_body(struct strbuf *body, const struct secret_options *o, const char *name,
                      const struct strbuf *value, json_t *metadata)
{
    struct json j = {.out = body};

    strbuf_init(body, BODY_MAX);
    strbuf_reserve(body);
    jw_object_begin(&j);
    if (name)
        jw_string(jw_key(&j, "name"), name);
    jw_bytes(jw_key(&j, "value"), value->buf, value->len);
    if (metadata)
        add_metadata(&j, o, metadata);
    jw_object_end(&j);
}

static int create(struct client *c, const struct secret_options *o, const struct strbuf *value,
                  json_t **ret, struct sg_error *e)
{
    AUTO(jr_free_p) json_t *metadata = json_object();
    AUTO(strbuf_wipe) struct strbuf body = {0};

    make_body(&body, o, o->base.args[0], value, metadata);
    return api_call(c, "POST", &body, ret, e, "/secrets");
}

/* Gives a secret a new value. The server replaces its metadata as a whole or not at all, so we read
 * the old metadata first and keep the rest of it. */
static int update(struct client *c, const struct secret_options *o, const struct strbuf *value,
                  json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_wipe) struct strbuf body = {0};
    AUTO(jr_free_p) json_t *old = NULL;
    json_t *metadata = NULL;

    if (o->hosts.n > 0 || o->headers.n > 0) {
        int r = api_get(c, &old, e, "/secrets/%s", o->base.args[0]);

        if (r < 0)
            return r;
        metadata = json_object_get(old, "metadata");
    }
    make_body(&body, o, NULL, value, metadata);
    return api_call(c, "POST", &body, ret, e, "/secrets/%s", o->base.args[0]);
}

static int set(struct client *c, const struct secret_options *o, json_t **ret, struct sg_error *e)
{
    AUTO(strbuf_wipe) struct strbuf value = {0};
    int r = secret_value_read(o->from_file, o->base.args[0], &value, e);

    if (r == 0)
        r = check_text(&value, e);
    if (r == 0)
        r = create(c, o, &value, ret, e);
    return r == -EEXIST ? update(c, o, &value, ret, e) : r;
}

int secret_set_fn(struct client *c, void *options, struct sg_error *e)
{
    const struct secret_options *o = options;
    AUTO(jr_free_p) json_t *answer = NULL;

    prctl(PR_SET_DUMPABLE, 0); /* no core dump while the value is in our memory */
    int r = set(c, o, &answer, e);
    if (r == 0 && o->base.json)
        r = jr_print(answer, e);
    else if (r == 0)
        show_say(stdout, "%s: version %llu", jr_text(answer, "name"),
                 (unsigned long long)jr_count(answer, "currentVersion"));
    return r;
}
