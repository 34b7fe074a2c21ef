#include "wire/policy_document.h"

#include "lib/text/json.h"

static void print_list(struct json *j, const char *key, const char *const *list)
{
    jw_key(j, key);
    jw_array_begin(j);
    for (; list && *list; list++)
        jw_string(j, *list);
    jw_array_end(j);
}

static void print_secrets(struct json *j, const struct egress_document *d)
{
    jw_key(j, "secrets");
    jw_array_begin(j);
    for (size_t i = 0; i < d->n_secrets; i++) {
        jw_object_begin(j);
        jw_key(j, "name");
        jw_string(j, d->secrets[i].name);
        jw_key(j, "value");
        jw_string(j, d->secrets[i].value);
        jw_key(j, "placeholder");
        jw_string(j, d->secrets[i].placeholder);
        print_list(j, "hosts", d->secrets[i].hosts);
        jw_object_end(j);
    }
    jw_array_end(j);
}

void egress_document_print(const struct egress_document *d, struct strbuf *out)
{
    struct json j;

    jw_init(&j, out);
    jw_object_begin(&j);
    jw_key(&j, "tenant");
    jw_string(&j, d->tenant);
    jw_key(&j, "sandbox");
    jw_string(&j, d->sandbox_id);
    jw_key(&j, "default");
    jw_string(&j, d->default_deny ? "deny" : "allow");
    print_list(&j, "allow", d->allow);
    print_list(&j, "deny", d->deny);
    if (d->n_secrets > 0)
        print_secrets(&j, d);
    jw_key(&j, "fakeIp");
    jw_bool(&j, d->fake_ip);
    jw_key(&j, "sanitise");
    jw_string(&j, "off");
    jw_key(&j, "flows");
    jw_u64(&j, d->flows);
    jw_key(&j, "flowRate");
    jw_u64(&j, d->flow_rate);
    jw_key(&j, "bytes");
    jw_u64(&j, d->bytes);
    jw_object_end(&j);
}
