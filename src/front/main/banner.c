#include "front/main/banner.h"

#include <stdio.h>
#include <string.h>

#include "lib/settings/address.h"
#include "front/e2b/template.h"
#include "front/store/store.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+"

static void own_url(const struct settings *s, int listener, char *ret, size_t cap)
{
    struct address a = {.len = sizeof(a.addr)};
    char text[ADDRESS_TEXT_MAX] = "?";

    if (s->domain[0] && s->tls_cert[0]) {
        snprintf(ret, cap, "https://api.%s", s->domain);
        return;
    }
    if (getsockname(listener, (struct sockaddr *)&a.addr, &a.len) == 0)
        address_format(&a, text);
    snprintf(ret, cap, "http%s://%s", s->tls_cert[0] ? "s" : "", text);
}

void banner_url(const struct settings *s, int listener, char *ret, size_t cap)
{
    own_url(s, listener, ret, cap);
    if (strstr(ret, "://0.0.0.0") || strstr(ret, "://[::]"))
        ret[0] = '\0';
}

/* `key create` looks in another directory unless it is told. */
static void print_state(const char *state)
{
    bool plain = strspn(state, PLAIN) == strlen(state);

    printf(plain ? " --state %s" : " --state '%s'", state);
}

/* Whether there is more to be had than the machine's own files. */
static void tell_world(struct front *f)
{
    static const struct template_ref base = {.name = TEMPLATE_BASE, .tag = REF_DEFAULT_TAG};
    struct template_found t;

    if (strcmp(f->settings.world, "auto") == 0 &&
        template_find(f->store, NULL, &base, &t, NULL) == 0 && template_stand(f, &t, NULL) == 0 &&
        !t.snapshot[0])
        printf("Sandboxes see this machine's /usr: 'sandglass world make' gives them a Debian\n");
}

int banner_print(struct front *f, int listener, bool first, struct sg_error *e)
{
    char url[512], key[STORE_KEY_LEN + 1];
    struct store_tenant tenant;
    struct store_key info;
    int r;

    own_url(&f->settings, listener, url, sizeof(url));
    if (!first) {
        printf("Serving on %s\n", url);
        tell_world(f);
        fflush(stdout);
        return 0;
    }
    r = store_tenant_ensure(f->store, "default", &tenant, e);
    if (r == 0)
        r = store_key_create(f->store, tenant.id, "first", key, &info, e);
    if (r < 0)
        return r;
    printf("Serving on %s\n\n"
           "This is the first start: here is a key, shown only once. In the shell of a program\n"
           "that was written for E2B:\n\n"
           "  export E2B_API_URL=%s E2B_SANDBOX_URL=%s\n"
           "  export E2B_API_KEY=%s\n\n"
           "More keys: sandglass key create",
           url, url, url, key);
    if (strcmp(f->settings.state, SETTINGS_STATE_DIR) != 0)
        print_state(f->settings.state);
    putchar('\n');
    tell_world(f);
    explicit_bzero(key, sizeof(key));
    fflush(stdout);
    return 0;
}
