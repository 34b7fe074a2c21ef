#include "wire/policy_document.h"

#include "lib/text/json.h"

static void print_list(struct json *j, const char *key, const char *const *list)
{
    jw_array_begin(jw_key(j, key));
    for (; list && *list; list++)
        jw_string(j, *list);
    jw_array_end(j);
}

static void print_secrets(struct json *j, const struct egress_document *d)
{
    jw_array_begin(jw_key(j, "secrets"));
    for (size_t i = 0; i < d->n_secrets; i++) {
        jw_object_begin(j);
        jw_string(jw_key(j, "name"), d->secrets[i].name);
        jw_string(jw_key(j, "value"), d->secrets[i].value);
        jw_string(jw_key(j, "placeholder"), d->secrets[i].placeholder);
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
    jw_string(jw_key(&j, "tenant"), d->tenant);
    jw_string(jw_key(&j, "sandbox"), d->sandbox_id);
    jw_string(jw_key(&j, "default"), d->default_deny ? "deny" : "allow");
    print_list(&j, "allow", d->allow);
    print_list(&j, "deny", d->deny);
    if (d->n_secrets > 0)
        print_secrets(&j, d);
    jw_bool(jw_key(&j, "fakeIp"), d->fake_ip);
    jw_string(jw_key(&j, "sanitise"), "off");
    jw_u64(jw_key(&j, "flows"), d->flows);
    jw_u64(jw_key(&j, "flowRate"), d->flow_rate);
    jw_u64(jw_key(&j, "bytes"), d->bytes);
    jw_object_end(&j);
}
