#include "cli/client/settings.h"

#include "cli/shared/text_file.h"

#define DEFAULT_DOMAIN  "e2b.app"
#define DEBUG_API_URL   "http://localhost:3000"
#define KEY_MAX         1024
#define PRINTABLE_FIRST '!'
#define PRINTABLE_LAST  '~'

/* A variable of the environment, or NULL. An empty variable counts as not set. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static char *format(const char *before, const char *middle, const char *after)
{
    char *s = NULL;

    return asprintf(&s, "%s%s%s", before, middle, after) < 0 ? xstrdup("") : s;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Takes a URL without slashes at its end, because paths are appended to it. */
static int take_url(char **ret, const char *what, const char *url, struct sg_error *e)
{
    size_t len = strlen(url);
    const char *host = strstr(url, "://");

    if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) || !host[3] ||
        strcspn(url, " \t\r\n") != len)
        return err_invalid(e, "%s '%.128s' is not a URL: use for example " SETTINGS_LOCAL_URL, what,
                           url);
    while (url[len - 1] == '/')
        len--;
    *ret = strndup(url, len);
    return *ret ? 0 : err_set(e, SG_ERR_INTERNAL, -ENOMEM, "out of memory");
}

static int load_urls(struct settings *s, const char *url, struct sg_error *e)
{
    const char *api = variable("E2B_API_URL"), *sandbox = variable("E2B_SANDBOX_URL"),
               *domain = variable("E2B_DOMAIN"), *api_name = "E2B_API_URL",
               *sandbox_name = "E2B_SANDBOX_URL";
    int r = 0;

    if (url)
        api_name = sandbox_name = "--url";
    else if (!api && !sandbox && !domain && !s->debug)
        url = SETTINGS_LOCAL_URL;
    if (url)
        api = sandbox = url;
    s->domain = xstrdup(domain ? domain : DEFAULT_DOMAIN);
    if (api)
        r = take_url(&s->api_url, api_name, api, e);
    else
        s->api_url = s->debug ? xstrdup(DEBUG_API_URL) : format("https://api.", s->domain, "");
    if (r == 0 && sandbox)
        r = take_url(&s->sandbox_url, sandbox_name, sandbox, e);
    return r;
}

/* E2B's own domains have one host for the daemons of all sandboxes, which finds the sandbox by
 * headers. */
static bool has_common_host(const char *domain)
{
    static const char *const names[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(domain, names[i]) == 0)
            return true;
    return false;
}

char *settings_port_url(const struct settings *s, const char *port, const char *id,
                        const char *domain)
{
    char *url = NULL;

    if (s->sandbox_url)
        return xstrdup(s->sandbox_url);
    if (s->debug)
        return format("http://localhost:", port, "");
    if (!domain || !*domain)
        domain = s->domain;
    if (strcmp(port, SETTINGS_ENVD_PORT) == 0 && has_common_host(domain))
        return format("https://sandbox.", domain, "");
    return asprintf(&url, "https://%s-%s.%s", port, id, domain) < 0 ? xstrdup("") : url;
}

/* ---- the key --------------------------------------------------------------------------------- */

/* The key becomes a header, so it may have visible characters only. */
static int take_key(struct settings *s, const char *what, const char *key, struct sg_error *e)
{
    size_t len = strlen(key);

    if (len == 0 || len > KEY_MAX)
        return err_invalid(e, "%s: there is no API key in it", what);
    for (const char *p = key; *p; p++)
        if (*p < PRINTABLE_FIRST || *p > PRINTABLE_LAST)
            return err_invalid(e, "%s: an API key has no blanks and no special characters", what);
    s->api_key = xstrdup(key);
    return 0;
}

static int load_key_file(struct settings *s, const char *path, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    char what[192];
    unsigned number = 0;
    size_t len;
    int r =
        text_file_load("key file", path, KEY_MAX, "it must be one line, the key", &text, &len, e);

    if (r < 0)
        return r;
    char *cursor = text, *line = text_next_line(&cursor, &number);
    snprintf(what, sizeof(what), "key file '%.128s'", path);
    return take_key(s, what, line ? line : "", e);
}

static int load_key(struct settings *s, const char *key_file, struct sg_error *e)
{
    const char *key = variable("E2B_API_KEY");

    if (key_file)
        return load_key_file(s, key_file, e);
    if (key)
        return take_key(s, "E2B_API_KEY", key, e);
    if (s->debug)
        return 0;
    return err_invalid(
        e, "no API key: set E2B_API_KEY or use --api-key-file; on the server, 'sandglass "
           "key create' makes one");
}

int settings_load(struct settings *ret, const char *url, const char *key_file, struct sg_error *e)
{
    struct settings s = {0};
    const char *debug = variable("E2B_DEBUG");

    s.debug = !url && debug && strcasecmp(debug, "true") == 0;
    int r = load_urls(&s, url, e);
    if (r == 0)
        r = load_key(&s, key_file, e);
    if (r < 0) {
        settings_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void settings_done(struct settings *s)
{
    if (s->api_key)
        explicit_bzero(s->api_key, strlen(s->api_key));
    free(s->api_key);
    free(s->api_url);
    free(s->sandbox_url);
    free(s->domain);
    *s = (struct settings){0};
}
