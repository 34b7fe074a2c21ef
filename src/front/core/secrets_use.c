#include "front/core/secrets_use.h"

#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "front/core/hostname.h"
#include "front/core/secret_text.h"
#include "front/core/spec.h"
#include "front/store/secrets.h"

#define PLACEHOLDER_PREFIX "sgph_"
#define PLACEHOLDER_DIGITS 32

struct gathering {
    struct front *front;
    const char *tenant;
    json_t *entries; /* by name; with the document's fields and, until finish, `metadata` */
    size_t sealed;
    struct sg_error *e;
};

/* ---- one secret ------------------------------------------------------------------------------ */

static void take_entry(const struct store_vault *v, void *arg)
{
    json_t **ret = arg, *metadata = json_loads(v->metadata, 0, NULL);

    *ret = json_pack("{s:s, s:s, s:o}", "name", v->name, "sealed", v->sealed, "metadata",
                     metadata ? metadata : json_object());
}

/* Finds or makes the entry of the secret that is mentioned. */
static int find(struct gathering *g, const char *text, size_t len, json_t **ret)
{
    char name[SECRET_NAME_MAX + 1];
    json_t *entry = NULL;
    int r = secret_name(text, len, name);

    *ret = r == 0 ? json_object_get(g->entries, name) : NULL;
    if (*ret)
        return 0;
    if (r == 0)
        r = store_vault_get(g->front->store, g->tenant, name, take_entry, &entry, g->e);
    if (r == -ENOENT || r == -EINVAL)
        return err_invalid(
            g->e,
            "There is no secret '%.*s': make it first, with POST /secrets or 'sandglass "
            "secret set'",
            (int)(len < SECRET_NAME_MAX ? len : SECRET_NAME_MAX), text);
    if (r < 0)
        return r;
    json_object_set_new(g->entries, name, entry);
    g->sealed += json_string_length(json_object_get(entry, "sealed"));
    if (json_object_size(g->entries) > SECRETS_MAX)
        return err_invalid(g->e, "A sandbox can use at most %d secrets", SECRETS_MAX);
    if (g->sealed > SECRETS_SEALED_MAX)
        return err_invalid(
            g->e, "The secrets that the sandbox uses are too large together: at most %u KiB",
            SECRETS_SEALED_MAX / 4 * 3 / 1024);
    *ret = entry;
    return 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Whether a secret may go to a domain. One that names hosts goes nowhere else, whatever a rule
 * says. */
static bool may_go(const json_t *entry, const char *domain)
{
    json_t *hosts = secret_hosts(json_object_get(entry, "metadata"));
    bool may = json_array_size(hosts) == 0;

    for (size_t i = 0; i < json_array_size(hosts); i++)
        may |= hostname_covers(json_string_value(json_array_get(hosts, i)), domain);
    json_decref(hosts);
    return may;
}

static void add_domain(json_t *entry, const char *domain)
{
    json_t *domains = json_object_get(entry, "hosts");

    if (!domains) {
        domains = json_array();
        json_object_set_new(entry, "hosts", domains);
    }
    for (size_t i = 0; i < json_array_size(domains); i++)
        if (strcmp(json_string_value(json_array_get(domains, i)), domain) == 0)
            return;
    json_array_append_new(domains, json_string(domain));
}

static int use_in_header(struct gathering *g, const char *domain, const char *value)
{
    struct secret_mention m = {.end = value};

    while (secret_mentioned(m.end, &m)) {
        json_t *entry;
        int r = find(g, m.name, m.len, &entry);

        if (r < 0)
            return r;
        if (!may_go(entry, domain))
            return err_invalid(g->e, "The secret '%.*s' may not go to '%s': it is for other hosts",
                               (int)m.len, m.name, domain);
        add_domain(entry, domain);
    }
    return 0;
}

static int use_in_rule(struct gathering *g, const char *domain, const json_t *rule)
{
    json_t *headers = json_object_get(json_object_get(rule, "transform"), "headers");
    int r = 0;

    for (void *at = json_object_iter(headers); r == 0 && at;
         at = json_object_iter_next(headers, at))
        r = use_in_header(g, domain, json_string_value(json_object_iter_value(at)));
    return r;
}

static int use_in_rules(struct gathering *g, const json_t *network)
{
    json_t *rules = json_object_get(network, "rules");
    int r = 0;

    for (void *at = json_object_iter(rules); at; at = json_object_iter_next(rules, at)) {
        const json_t *list = json_object_iter_value(at);

        for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
            r = use_in_rule(g, json_object_iter_key(at), json_array_get(list, i));
    }
    return r;
}

/* ---- variables ------------------------------------------------------------------------------- */

static void make_placeholder(char ret[sizeof(PLACEHOLDER_PREFIX) + PLACEHOLDER_DIGITS])
{
    char token[SPEC_TOKEN_LEN + 1];

    token_random(token);
    snprintf(ret, sizeof(PLACEHOLDER_PREFIX) + PLACEHOLDER_DIGITS, "%s%.*s", PLACEHOLDER_PREFIX,
             PLACEHOLDER_DIGITS, token);
}
_Static_assert(PLACEHOLDER_DIGITS <= SPEC_TOKEN_LEN, "enough digits");

/* Refuses a placeholder for a secret without hosts: the sandbox could send the secret to a host of
 * its own, and read it there. */
static int check_hosts(struct gathering *g, const char *variable, const json_t *entry)
{
    json_t *hosts = secret_hosts(json_object_get(entry, "metadata"));
    size_t n = json_array_size(hosts);
    const char *name = jr_text_or(entry, "name", NULL);

    json_decref(hosts);
    return n > 0 ? 0
                 : err_invalid(
                       g->e,
                       "The secret '%s' cannot be used in the variable '%.64s': it names no host "
                       "that it may go to. Name its hosts in its metadata, '" SECRET_HOSTS_KEY
                       "' (sandglass secret set %s --host api.example.com)",
                       name, variable, name);
}

static int use_in_envs(struct gathering *g, json_t *envs)
{
    for (void *at = json_object_iter(envs); at; at = json_object_iter_next(envs, at)) {
        char fresh[sizeof(PLACEHOLDER_PREFIX) + PLACEHOLDER_DIGITS];
        struct secret_mention m;
        json_t *entry = NULL;

        if (!secret_mention_whole(json_string_value(json_object_iter_value(at)), &m))
            continue;
        int r = find(g, m.name, m.len, &entry);
        if (r == 0)
            r = check_hosts(g, json_object_iter_key(at), entry);
        if (r < 0)
            return r;
        if (!json_object_get(entry, "placeholder")) {
            make_placeholder(fresh);
            json_object_set_new(entry, "placeholder", json_string(fresh));
        }
        json_object_iter_set(envs, at, json_object_get(entry, "placeholder"));
    }
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Makes the document's array. A placeholder is replaced towards all hosts of its secret; the
 * domains of rules are among these. */
static json_t *finish(struct gathering *g)
{
    json_t *list = json_array(), *all = g->entries;

    for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at)) {
        json_t *entry = json_object_iter_value(at);
        const json_t *metadata = json_object_get(entry, "metadata");

        if (json_object_get(entry, "placeholder")) {
            json_object_set_new(entry, "hosts", secret_hosts(metadata));
            json_object_set_new(entry, "headers", secret_headers(metadata));
        }
        json_object_del(entry, "metadata");
        json_array_append(list, entry);
    }
    return list;
}

int secrets_gather(struct front *f, const char *tenant, const json_t *network, json_t *envs,
                   json_t **ret_secrets, struct sg_error *e)
{
    struct gathering g = {.front = f, .tenant = tenant, .entries = json_object(), .e = e};
    int r = use_in_rules(&g, network);

    if (r == 0)
        r = use_in_envs(&g, envs);
    if (r == 0)
        *ret_secrets = finish(&g);
    json_decref(g.entries);
    return r;
}
