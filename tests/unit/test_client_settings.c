/* Where the client looks for the server: every way in which the E2B variables can be set. */
#include "tap.h"

#include <fcntl.h>

#include "lib/base/fd.h"
#include "cli/client/settings.h"

TAP_MAIN

#define KEY "e2b_0123456789abcdef"

static void forget_all(void)
{
    static const char *const names[] = {"E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL",
                                        "E2B_DOMAIN", "E2B_DEBUG"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
}

static void fresh(void)
{
    forget_all();
    setenv("E2B_API_KEY", KEY, 1);
}

/* Both URLs that follow from the environment; `said` is the domain in the server's answer. */
static void expect_urls(const char *url, const char *said, const char *api, const char *expected)
{
    AUTO(settings_done) struct settings s = {0};
    AUTO(free_p) char *sandbox = NULL;
    struct sg_error e = {0};

    EXPECT(settings_load(&s, url, NULL, &e) == 0);
    EXPECT_STR(e.message, "");
    if (!s.api_url)
        return;
    sandbox = settings_port_url(&s, SETTINGS_ENVD_PORT, "iabc", said);
    EXPECT_STR(s.api_url, api);
    EXPECT_STR(sandbox, expected);
}

static void expect_refused(const char *url, const char *key_file, const char *words)
{
    AUTO(settings_done) struct settings s = {0};
    struct sg_error e = {0};

    EXPECT(settings_load(&s, url, key_file, &e) < 0);
    EXPECT(strstr(e.message, words) != NULL);
    if (!strstr(e.message, words))
        printf("# '%s' does not say '%s'\n", e.message, words);
    EXPECT(strchr(e.message, '\n') == NULL);
}

TEST(nothing_set_is_this_machine)
{
    fresh();
    expect_urls(NULL, NULL, "http://127.0.0.1:3000", "http://127.0.0.1:3000");
    setenv("E2B_API_URL", "", 1);
    setenv("E2B_DOMAIN", "", 1);
    expect_urls(NULL, NULL, "http://127.0.0.1:3000", "http://127.0.0.1:3000");
}

TEST(both_urls)
{
    fresh();
    setenv("E2B_API_URL", "http://10.0.0.1:8080/", 1);
    setenv("E2B_SANDBOX_URL", "https://sandboxes.test/base//", 1);
    setenv("E2B_DOMAIN", "other.test", 1);
    expect_urls(NULL, "said.test", "http://10.0.0.1:8080", "https://sandboxes.test/base");
}

TEST(a_domain_of_ones_own)
{
    fresh();
    setenv("E2B_DOMAIN", "box.test:8443", 1);
    expect_urls(NULL, NULL, "https://api.box.test:8443", "https://49983-iabc.box.test:8443");
    expect_urls(NULL, "", "https://api.box.test:8443", "https://49983-iabc.box.test:8443");
    expect_urls(NULL, "said.test", "https://api.box.test:8443", "https://49983-iabc.said.test");
}

TEST(domains_of_e2b)
{
    fresh();
    setenv("E2B_DOMAIN", "e2b.dev", 1);
    expect_urls(NULL, NULL, "https://api.e2b.dev", "https://sandbox.e2b.dev");
    expect_urls(NULL, "e2b.app", "https://api.e2b.dev", "https://sandbox.e2b.app");
}

TEST(one_url_leaves_the_other_to_the_domain)
{
    fresh();
    setenv("E2B_API_URL", "http://127.0.0.1:9", 1);
    expect_urls(NULL, NULL, "http://127.0.0.1:9", "https://sandbox.e2b.app");
    expect_urls(NULL, "box.test", "http://127.0.0.1:9", "https://49983-iabc.box.test");
    fresh();
    setenv("E2B_SANDBOX_URL", "http://127.0.0.1:9", 1);
    expect_urls(NULL, NULL, "https://api.e2b.app", "http://127.0.0.1:9");
}

TEST(other_ports)
{
    AUTO(settings_done) struct settings s = {0};
    AUTO(free_p) char *own = NULL, *common = NULL;

    fresh();
    setenv("E2B_DOMAIN", "e2b.dev", 1);
    EXPECT(settings_load(&s, NULL, NULL, NULL) == 0);
    own = settings_port_url(&s, "49999", "iabc", "box.test");
    common = settings_port_url(&s, "49999", "iabc", NULL);
    EXPECT_STR(own, "https://49999-iabc.box.test");
    EXPECT_STR(common, "https://49999-iabc.e2b.dev");
}

TEST(debug_mode)
{
    forget_all(); /* no key either */
    setenv("E2B_DEBUG", "true", 1);
    expect_urls(NULL, NULL, "http://localhost:3000", "http://localhost:49983");
    setenv("E2B_DEBUG", "false", 1);
    expect_refused(NULL, NULL, "no API key");
}

TEST(the_option_wins)
{
    fresh();
    setenv("E2B_API_URL", "http://10.0.0.1", 1);
    setenv("E2B_SANDBOX_URL", "http://10.0.0.2", 1);
    setenv("E2B_DEBUG", "true", 1);
    expect_urls("http://[::1]:3000/", "said.test", "http://[::1]:3000", "http://[::1]:3000");
}

TEST(bad_urls)
{
    fresh();
    expect_refused("127.0.0.1:3000", NULL, "--url '127.0.0.1:3000' is not a URL");
    expect_refused("ftp://host", NULL, "is not a URL");
    expect_refused("http://", NULL, "is not a URL");
    expect_refused("http://a b", NULL, "is not a URL");
    expect_refused("http://a\nX-Evil: 1", NULL, "is not a URL");
    setenv("E2B_API_URL", "nonsense", 1);
    expect_refused(NULL, NULL, "E2B_API_URL 'nonsense' is not a URL");
}

TEST(keys)
{
    AUTO(settings_done) struct settings s = {0};
    char path[] = "/tmp/sandglass-key.XXXXXX";
    int fd = mkstemp(path);

    EXPECT(fd >= 0);
    EXPECT(fd_write_all(fd, "  " KEY "\r\n", strlen(KEY) + 4) == 0);
    fresh();
    setenv("E2B_API_KEY", "e2b_other", 1);
    EXPECT(settings_load(&s, NULL, path, NULL) == 0);
    EXPECT_STR(s.api_key ? s.api_key : "", KEY);
    EXPECT(ftruncate(fd, 0) == 0);
    expect_refused(NULL, path, "no API key in it");
    unlink(path);
    close(fd);
    expect_refused(NULL, path, "cannot open key file");
}

TEST(bad_keys)
{
    forget_all();
    expect_refused(NULL, NULL, "sandglass key create");
    setenv("E2B_API_KEY", "", 1);
    expect_refused(NULL, NULL, "sandglass key create");
    setenv("E2B_API_KEY", "secret\r\nX-Evil: 1", 1);
    expect_refused(NULL, NULL, "E2B_API_KEY: an API key has no blanks");
    setenv("E2B_API_KEY", "s\303\251cret", 1);
    expect_refused(NULL, NULL, "no special characters");
}

TEST(a_key_is_not_in_messages)
{
    AUTO(settings_done) struct settings s = {0};
    struct sg_error e = {0};

    fresh();
    setenv("E2B_API_KEY", "topsecret value", 1);
    EXPECT(settings_load(&s, NULL, NULL, &e) < 0);
    EXPECT(strstr(e.message, "topsecret") == NULL);
}
