#include "front/v1/spec.h"

#include <string.h>

#include "front/e2b/create.h"

int spec_of_body(void *arg, const char *template_id, struct sandbox_spec *ret,
                 char snapshot[ID_LEN + 1], struct sg_error *e)
{
    struct e2b_req *q = arg;
    const json_t *given = field_get(&q->in, "template");
    const json_t *network = json_object_get(q->body, "network");
    const char *word = json_string_value(network);
    /* The same fields under the names that E2B's create has for them. */
    json_t *body = json_pack("{s:O*, s:O*}", "metadata", json_object_get(q->body, "metadata"),
                             "envVars", json_object_get(q->body, "envs"));

    if (word && strcmp(word, "open") != 0 && strcmp(word, "block") != 0) {
        json_decref(body);
        return err_invalid(e, FIELD_ERROR "'network' must be \"block\", \"open\" or an object");
    }
    if (word)
        json_object_set_new(body, "allow_internet_access", json_boolean(word[0] == 'o'));
    else if (network)
        json_object_set(body, "network", (json_t *)(uintptr_t)network);
    if (!template_id)
        template_id = given ? json_string_value(given) : q->front->settings.context_template;
    int r = create_spec(q->front, &q->tenant, body, SPEC_OWN, template_id, ret, snapshot, e);
    json_decref(body);
    return r;
}

void spec_check(struct e2b_req *q)
{
    static const char *const fields[] = {"template", "metadata", "envs", "network"};
    char snapshot[ID_LEN + 1];
    struct sandbox_spec spec;
    bool any = false;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        any = any || field_get(&q->in, fields[i]);
    if (!any)
        return;
    /* E2B's create calls this field `envVars`, and an error must name it as the client did. So it
     * is checked here first. */
    spec_read_envs(&q->in, "envs");
    fields_check(&q->in, spec_of_body(q, NULL, &spec, snapshot, &q->wrong));
    if (fields_ok(&q->in))
        sandbox_spec_done(&spec);
}
