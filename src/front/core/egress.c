#include "front/core/egress.h"

#include <string.h>

#include "lib/json/memfd.h"
#include "lib/json/values.h"
#include "lib/base/fd.h"
#include "wire/guard.h"
#include "front/core/lifecycle.h"
#include "front/core/output_filter.h"
#include "front/core/secret_text.h"
#include "front/core/secrets_use.h"
#include "front/core/warden.h"
#include "front/core/workload.h"
#include "lib/log/log.h"

#define ALL_TRAFFIC "0.0.0.0/0"

/* ---- the document ---------------------------------------------------------------------------- */

/* Returns "" for an entry that is no text: the list may come from a database. */
static const char *text_at(const json_t *list, size_t i)
{
    const char *text = json_string_value(json_array_get(list, i));

    return text ? text : "";
}

static bool has_all_traffic(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_at(list, i), ALL_TRAFFIC) == 0)
            return true;
    return false;
}

static bool denies_by_default(const struct front *f, const struct sandbox_spec *s)
{
    if (has_all_traffic(json_object_get(s->network, "denyOut")))
        return true;
    if (s->allow_internet < 0)
        return f->settings.egress_e2b_default == EGRESS_BLOCK;
    return s->allow_internet == 0;
}

static bool is_blocked(const struct front *f, const struct sandbox_spec *s)
{
    return denies_by_default(f, s) && json_array_size(json_object_get(s->network, "allowOut")) == 0;
}

/* Tells names from addresses: a name has a letter after its last dot; addresses and networks have
 * none there, or have a colon. */
static bool is_name(const char *entry)
{
    const char *last = strrchr(entry, '.');

    if (strchr(entry, ':') || strchr(entry, '/'))
        return false;
    last = last ? last + 1 : entry;
    return last[strspn(last, "0123456789")] != '\0';
}

static bool wants_fakes(const struct front *f, const struct sandbox_spec *s)
{
    const json_t *allow = json_object_get(s->network, "allowOut");
    bool names = false;

    if (f->settings.egress_fake_ip != FAKE_AUTO)
        return f->settings.egress_fake_ip == FAKE_YES;
    for (size_t i = 0; i < json_array_size(allow); i++)
        names |= is_name(text_at(allow, i));
    return names && denies_by_default(f, s);
}

static json_t *copy_list(const json_t *list)
{
    json_t *copy = json_array();

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_at(list, i), ALL_TRAFFIC) != 0)
            json_array_append(copy, json_array_get(list, i));
    return copy;
}

/* Converts the client's rules, {domain: [{transform: {headers: {name: value}}}]}, to the document's
 * form. */
static json_t *copy_rules(json_t *rules)
{
    json_t *copy = json_array(), *list, *value;
    const char *domain, *name;

    json_object_foreach(rules, domain, list)
    {
        json_t *headers = json_array();
        json_t *given =
            json_object_get(json_object_get(json_array_get(list, 0), "transform"), "headers");
        json_object_foreach(given, name, value)
            json_array_append_new(headers, json_pack("[sO]", name, value));
        json_array_append_new(copy, json_pack("{s:s, s:o}", "domain", domain, "headers", headers));
    }
    return copy;
}

static json_t *make_document(struct front *f, const char *id, const struct sandbox_spec *s)
{
    const struct settings *set = &f->settings;
    json_t *proxy = json_object_get(s->network, "egressProxy");
    json_t *allow = json_object_get(s->network, "allowOut");
    bool allows_all = has_all_traffic(allow);
    json_t *d = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:b, s:o, s:s, s:i, s:i, s:I}", "tenant", s->tenant, "sandbox",
        id, "default", denies_by_default(f, s) && !allows_all ? "deny" : "allow", "allow",
        copy_list(allow), "deny",
        allows_all ? json_array() : copy_list(json_object_get(s->network, "denyOut")), "fakeIp",
        wants_fakes(f, s), "rules", copy_rules(json_object_get(s->network, "rules")), "sanitise",
        sanitise_mode_name(output_filter_mode_of(f, s->tenant, s->context[0] != '\0')), "flows",
        (int)set->egress_flows, "flowRate", (int)set->egress_flow_rate, "bytes",
        (json_int_t)set->egress_bytes);

    if (json_is_object(proxy))
        json_object_set(d, "proxy", proxy);
    json_t *identity = workload_document(f, id, s);
    if (identity)
        json_object_set_new(d, "identity", identity);
    if (s->secrets)
        json_object_set(d, "secrets", s->secrets);
    return d;
}

int egress_document(struct front *f, const char *id, const struct sandbox_spec *s, int *ret_fd,
                    struct sg_error *e)
{
    if (is_blocked(f, s)) {
        *ret_fd = -1;
        return 0;
    }
    int r = memfd_of_json("sandglass-policy", make_document(f, id, s), GUARD_DOCUMENT_MAX);
    if (r == -E2BIG)
        return err_set(e, SG_ERR_INVALID, r, "network is larger than %u bytes", GUARD_DOCUMENT_MAX);
    if (r < 0)
        return err_set(e, SG_ERR_LIMIT, r, "write the sandbox's policy: out of memory");
    *ret_fd = r;
    return 0;
}

/* ---- secrets --------------------------------------------------------------------------------- */

static json_t *secret_of(json_t *list, const char *name)
{
    json_t *entry;
    size_t i;

    json_array_foreach(list, i, entry) if (strcmp(jr_text(entry, "name"), name) == 0) return entry;
    return NULL;
}

/* Returns the variables as the client gave them: placeholders become mentions of their secrets
 * again. */
static json_t *named_again(const struct sandbox_spec *s)
{
    json_t *envs = json_deep_copy(s->envs), *entry, *value;
    const char *name;
    size_t i;

    json_array_foreach(s->secrets, i, entry) json_object_foreach(
        envs, name, value) if (json_equal(value, json_object_get(entry, "placeholder")))
        json_object_set_new(envs, name, json_sprintf(SECRET_MARK "%s}", jr_text(entry, "name")));
    return envs;
}

/* Gathers the secrets that the variables and `network` mention. A secret for which the sandbox
 * already has a placeholder keeps it. */
static int gather(struct front *f, const struct sandbox_spec *s, const json_t *network,
                  json_t **ret_envs, json_t **ret_secrets, struct sg_error *e)
{
    json_t *envs = named_again(s), *secrets = NULL, *entry;
    size_t i;
    int r = secrets_gather(f, s->tenant, network, envs, &secrets, e);

    if (r < 0) {
        json_decref(envs);
        return r;
    }
    json_array_foreach(secrets, i, entry)
    {
        json_t *old = secret_of(s->secrets, jr_text(entry, "name"));
        if (json_object_get(old, "placeholder"))
            json_object_set(entry, "placeholder", json_object_get(old, "placeholder"));
    }
    *ret_envs = envs;
    *ret_secrets = secrets;
    return 0;
}

int egress_prepare(struct front *f, struct sandbox_spec *s, struct sg_error *e)
{
    json_t *envs, *secrets;
    int r = gather(f, s, s->network, &envs, &secrets, e);

    if (r < 0)
        return r;
    json_decref(s->envs);
    s->envs = envs;
    json_decref(s->secrets);
    s->secrets = secrets;
    return 0;
}

void egress_forget_placeholders(struct sandbox_spec *s)
{
    json_t *envs = named_again(s);

    json_decref(s->envs);
    s->envs = envs;
    json_decref(s->secrets);
    s->secrets = NULL;
}

/* ---- a change -------------------------------------------------------------------------------- */

/* A network as the client asked for it, with the secrets that it needs. */
struct network {
    json_t *fields, *secrets;
    int allow_internet;
};

struct change {
    struct sandbox *sandbox;
    struct network before; /* empty if the network itself does not change */
    const json_t *now;     /* only compared: tells whether another change came meanwhile */
    sandbox_done done;
    void *arg;
    int r;
    struct sg_error e;
};

static void swap_network(struct sandbox_spec *s, struct network *n)
{
    struct network old = {s->network, s->secrets, s->allow_internet};

    s->network = n->fields;
    s->secrets = n->secrets;
    s->allow_internet = n->allow_internet;
    *n = old;
}

/* A network that could not be put in force is taken out of the spec again: the sandbox does not
 * have it, and must not get it when it resumes. */
static void change_end(void *arg)
{
    struct change *c = arg;
    struct sandbox *b = c->sandbox;

    if (c->r < 0 && c->now && b->spec.network == c->now) {
        swap_network(&b->spec, &c->before);
        sandbox_note_changed(b);
    }
    if (c->done)
        c->done(c->arg, b, c->r, &c->e);
    json_decref(c->before.fields);
    json_decref(c->before.secrets);
    free(c);
    sandbox_unref(b);
}

static void on_policy(void *arg, const struct warden_answer *w)
{
    struct change *c = arg;

    c->e = w->e;
    c->r = w->r == -EAGAIN ? 0 : w->r; /* no guard: nothing goes out; the next gets this policy */
    if (c->r < 0)
        change_end(c);
    else
        egress_install(c->sandbox, change_end, c);
}

/* Puts the network of the sandbox's spec in force. before: the network to return to on failure,
 * taken over; NULL: the spec stays as it is. */
static void apply(struct sandbox *b, const struct network *before, sandbox_done done, void *arg)
{
    int fd = -1;
    struct change *c = NEW(struct change, .sandbox = sandbox_ref(b), .done = done, .arg = arg);

    if (before) {
        c->before = *before;
        c->now = b->spec.network;
    }
    if (!b->closed)
        c->r = egress_document(b->front, b->id, &b->spec, &fd, &c->e);
    if (c->r < 0) {
        change_end(c);
        return;
    }
    sandbox_note_changed(b);
    struct order o = sandbox_order(b, ORDER_POLICY);
    o.flags = fd >= 0 ? ORDER_NETWORK : 0;
    warden_order(b->front, &o, fd, on_policy, c);
}

void sandbox_set_network(struct sandbox *b, json_t *network, int allow_internet, sandbox_done done,
                         void *arg)
{
    struct network next = {.fields = network, .allow_internet = allow_internet};
    json_t *envs;
    struct sg_error e = {0};
    int r = gather(b->front, &b->spec, network, &envs, &next.secrets, &e);

    if (r < 0) {
        json_decref(network);
        done(arg, b, r, &e);
        return;
    }
    json_decref(envs); /* a running sandbox keeps its variables */
    swap_network(&b->spec, &next);
    apply(b, &next, done, arg);
}

void sandbox_apply_network(struct sandbox *b, sandbox_done done, void *arg)
{
    apply(b, NULL, done, arg);
}

static json_t *without(const json_t *secrets, const char *name)
{
    json_t *left = json_array();

    for (size_t i = 0; i < json_array_size(secrets); i++) {
        json_t *entry = json_array_get(secrets, i);
        if (strcmp(jr_text(entry, "name"), name) != 0)
            json_array_append(left, entry);
    }
    return left;
}

static void renew_secret(struct sandbox *b, const char *name)
{
    json_t *envs = NULL, *secrets;
    struct sg_error e = {0};

    /* A secret that was deleted, or may not go to these hosts any more, loses its value. */
    if (gather(b->front, &b->spec, b->spec.network, &envs, &secrets, &e) < 0)
        secrets = without(b->spec.secrets, name);
    json_decref(envs);
    json_decref(b->spec.secrets);
    b->spec.secrets = secrets;
    apply(b, NULL, NULL, NULL);
}

void egress_secret_changed(struct front *f, const char *tenant, const char *name)
{
    SANDBOXES_EACH(b, f)
        if (strcmp(b->spec.tenant, tenant) == 0 && secret_of(b->spec.secrets, name))
            renew_secret(b, name);
}
