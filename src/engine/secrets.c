/* Secrets of a sandbox. The sandbox gets placeholders, and the certificate of the guard, which
 * replaces them by the values. A server's front does the same (front/core/secrets_use.h,
 * front/core/egress_ca.c). */
#include <stdio.h>
#include <string.h>

#include "engine/egress.h"
#include "engine/sandbox.h"

#define SECRETS_MAX 32
#define VALUE_MAX   (16u * 1024)
#define HOSTS_MAX   256 /* of all secrets together */
#define BUNDLE      "/etc/ssl/certs/ca-certificates.crt"
#define BUNDLE_MAX  (4u * 1024 * 1024)
#define CERTIFICATE "/usr/local/share/ca-certificates/sandglass-egress.crt"
#define PREFIX      "sgph_"
#define PLACEHOLDER (sizeof(PREFIX) + 2 * ID_LEN)

/* For programs that do not use the system's root certificates. */
static const char *const trust[] = {"SSL_CERT_FILE=" BUNDLE,  "REQUESTS_CA_BUNDLE=" BUNDLE,
                                    "CURL_CA_BUNDLE=" BUNDLE, "GIT_SSL_CAINFO=" BUNDLE,
                                    "PIP_CERT=" BUNDLE,       "NODE_EXTRA_CA_CERTS=" CERTIFICATE};

void strings_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

/* ---- checking the options -------------------------------------------------------------------- */

bool secret_name_is_valid(const char *s)
{
    static const char digits[] = "0123456789",
                      all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t len = s ? strlen(s) : 0;

    return len > 0 && len <= 64 && strspn(s, all) == len && !strchr(digits, s[0]);
}

/* Errors never show the value. */
static int check(const struct sg_secret *s, struct sg_error *e)
{
    if (!secret_name_is_valid(s->name))
        return err_invalid(e, "a secret's name must be a variable name: letters, digits and '_'");
    if (!s->value || !*s->value || strlen(s->value) > VALUE_MAX)
        return err_invalid(e, "the secret '%s' is empty or over %u KiB", s->name, VALUE_MAX / 1024);
    if (!s->hosts || !*s->hosts)
        return err_invalid(e, "the secret '%s' names no host that it may go to", s->name);
    for (const char *const *host = s->hosts; *host; host++)
        if (!network_entry_is_name(*host))
            return err_invalid(e, "the host '%.64s' of secret '%s' is not a host name", *host,
                               s->name);
    return 0;
}

int secrets_prepare(const struct sg_options *o, char ***ret_placeholders, struct sg_error *e)
{
    char **list, id[ID_LEN + 1], more[ID_LEN + 1];

    if (o->n_secrets > SECRETS_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "a sandbox has at most %d secrets", SECRETS_MAX);
    if (o->n_secrets > 0 && o->network == SG_NETWORK_BLOCK)
        return err_invalid(e, "secrets are put into requests: the sandbox needs a network");
    for (size_t i = 0; i < o->n_secrets; i++) {
        int r = check(&o->secrets[i], e);
        if (r < 0)
            return r;
    }
    list = xcalloc(o->n_secrets + 1, sizeof(*list));
    for (size_t i = 0; i < o->n_secrets; i++) {
        list[i] = xcalloc(1, PLACEHOLDER);
        id_random(id);
        id_random(more);
        snprintf(list[i], PLACEHOLDER, PREFIX "%s%s", id, more);
    }
    *ret_placeholders = list;
    return 0;
}

/* ---- into the sandbox ------------------------------------------------------------------------ */

static int write_as_root(struct sg_sandbox *s, const char *path, const char *text,
                         struct sg_error *e)
{
    return sg_sandbox_write_file(s, "root", path, text, strlen(text), e);
}

static int install_certificate(struct sg_sandbox *s, const char *pem, const char *hash,
                               struct sg_error *e)
{
    AUTO(free_p) char *bundle = NULL;
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(BUNDLE_MAX + (64u * 1024));
    char hashed[64];
    size_t len = 0;
    int r;

    if (file_read_whole(s->chan, "root", BUNDLE, BUNDLE_MAX, &bundle, &len, NULL) == 0)
        strbuf_add(&text, bundle, len);
    strbuf_addstr(&text, pem);
    snprintf(hashed, sizeof(hashed), "/etc/ssl/certs/%s.0", hash);
    r = write_as_root(s, BUNDLE, text.buf, e);
    if (r == 0)
        r = write_as_root(s, CERTIFICATE, pem, e);
    if (r == 0)
        r = write_as_root(s, hashed, pem, e);
    return r;
}

static char **make_env(const struct sg_options *o, char *const *placeholders)
{
    char **env = xcalloc(o->n_secrets + ARRAY_SIZE(trust) + 1, sizeof(*env));
    size_t n = 0;

    for (; n < ARRAY_SIZE(trust); n++)
        env[n] = xstrdup(trust[n]);
    for (size_t i = 0; i < o->n_secrets; i++, n++) {
        size_t len = strlen(o->secrets[i].name) + strlen(placeholders[i]) + 2;
        env[n] = xcalloc(1, len);
        snprintf(env[n], len, "%s=%s", o->secrets[i].name, placeholders[i]);
    }
    return env;
}

int secrets_install(struct sg_sandbox *s, const struct sg_options *o, char *const *placeholders,
                    struct sg_error *e)
{
    const char *hosts[HOSTS_MAX + 1] = {NULL};
    AUTO(free_p) char *pem = NULL;
    char hash[16];
    size_t n = 0;
    int r;

    if (o->n_secrets == 0)
        return 0;
    for (size_t i = 0; i < o->n_secrets; i++)
        for (const char *const *host = o->secrets[i].hosts; *host; host++) {
            if (n == HOSTS_MAX)
                return err_set(e, SG_ERR_INVALID, -E2BIG, "secrets have at most %d hosts in all",
                               HOSTS_MAX);
            hosts[n++] = *host;
        }
    r = egress_certificate(s->engine->egress, s->id, hosts, &pem, hash, e);
    if (r == 0)
        r = sandbox_await(s, e);
    if (r == 0)
        r = install_certificate(s, pem, hash, e);
    if (r == 0)
        s->env = make_env(o, placeholders);
    return r;
}
