/* What queries and paths say: references, filters, tokens of pages, times, ids. */
#include "tap.h"

#include "lib/base/clock.h"
#include "front/e2b/filter.h"
#include "front/e2b/page.h"
#include "front/e2b/ref.h"
#include "front/e2b/shape.h"

TAP_MAIN

static void expect_ref(const char *text, const char *space, const char *name, const char *tag,
                       bool tagged)
{
    struct template_ref ref;
    struct sg_error e;

    EXPECT(template_ref_parse(text, &ref, &e) == 0);
    EXPECT_STR(ref.space, space);
    EXPECT_STR(ref.name, name);
    EXPECT_STR(ref.tag, tag);
    EXPECT(ref.tagged == tagged);
}

TEST(references)
{
    expect_ref("base", "", "base", "default", false);
    expect_ref("my-template:v1.2", "", "my-template", "v1.2", true);
    expect_ref("acme/my_template", "acme", "my_template", "default", false);
    expect_ref("acme/x:default", "acme", "x", "default", true);
    expect_ref("  MyTemplate  :  Prod  ", "", "mytemplate", "prod", true);
    expect_ref(" a / b : c ", "a", "b", "c", true);
}

TEST(what_is_no_reference)
{
    static const char *const bad[] = {"",         " ",    "/x",   "x/",    "x:",    ":x",
                                      "a/b/c",    "a b",  "a!",   "a.b",   "x:y:z", "x:y/z",
                                      "\xc3\xa4", "a\n!", "../x", "x%2fy", "a/:b"};
    char longer[STORE_NAME_MAX + 2];
    struct template_ref ref;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int r = template_ref_parse(bad[i], &ref, &e);

        if (r == 0)
            printf("# '%s'\n", bad[i]);
        EXPECT(r == -EINVAL && e.kind == SG_ERR_INVALID);
    }
    memset(longer, 'a', sizeof(longer));
    longer[STORE_NAME_MAX + 1] = '\0';
    EXPECT(template_ref_parse(longer, &ref, &e) == -EINVAL);
    longer[STORE_NAME_MAX] = '\0';
    EXPECT(template_ref_parse(longer, &ref, &e) == 0);
    EXPECT(template_ref_parse("x:y!", &ref, &e) == -EINVAL);
    EXPECT_STR(e.message, "invalid tag: y!");
}

TEST(namespace_must_be_the_own_one)
{
    struct template_ref ref;
    struct sg_error e;

    EXPECT(template_ref_parse("acme/x", &ref, &e) == 0);
    EXPECT(template_ref_own(&ref, "acme", &e) == 0);
    EXPECT(template_ref_own(&ref, "beta", &e) == -EINVAL);
    EXPECT_STR(e.message, "namespace 'acme' must match your team 'beta'");
    EXPECT(template_ref_parse("x", &ref, &e) == 0);
    EXPECT(template_ref_own(&ref, "beta", &e) == 0);
}

static void expect_pair(const char *text, const char *key, const char *value)
{
    json_t *pairs = NULL;
    struct sg_error e;

    EXPECT(filter_metadata(text, &pairs, &e) == 0);
    const char *got = json_string_value(json_object_get(pairs, key));
    EXPECT_STR(got ? got : "(none)", value);
    json_decref(pairs);
}

/* The query's own decoding has been done: two of three are left. */
TEST(metadata_is_decoded_twice_more)
{
    expect_pair("a%2520b=c%2526d", "a b", "c&d");
    expect_pair("a%252520b%3Dc%252526d", "a%20b", "c%26d");
    expect_pair("user=abc&app=prod", "app", "prod");
    expect_pair("user=abc&app=prod", "user", "abc");
    expect_pair("k=", "k", "");
    expect_pair("=v", "", "v");
    expect_pair("k=a%2Bb", "k", "a b");
    expect_pair("k=a%252Bb", "k", "a+b");
    expect_pair("k=%25C3%25A4", "k", "\xc3\xa4");
    expect_pair("k=%253D%2526", "k", "=&");
}

TEST(bad_metadata_filters)
{
    static const char *const bad[] = {"",      "k",     "a=b=c", "a=b&",  "&a=b",
                                      "a=%",   "a=%zz", "a=%2",  "a=%00", "a=%2500",
                                      "a=%25", "a=%ff", "%ff=a", "a=%252"};
    json_t *pairs = NULL;
    struct sg_error e;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int r = filter_metadata(bad[i], &pairs, &e);

        if (r == 0)
            printf("# '%s'\n", bad[i]);
        EXPECT(r == -EINVAL && strstr(e.message, "Error parsing metadata"));
    }
}

TEST(every_pair_must_match)
{
    json_t *have = json_pack("{s:s,s:s}", "a", "1", "b", "2"), *one = json_pack("{s:s}", "a", "1"),
           *both = json_pack("{s:s,s:s}", "a", "1", "b", "2"),
           *wrong = json_pack("{s:s,s:s}", "a", "1", "b", "3"),
           *other = json_pack("{s:s}", "c", "1");

    EXPECT(filter_matches(one, have) && filter_matches(both, have));
    EXPECT(!filter_matches(wrong, have) && !filter_matches(other, have));
    EXPECT(!filter_matches(one, NULL));
    json_decref(have);
    json_decref(one);
    json_decref(both);
    json_decref(wrong);
    json_decref(other);
}

TEST(states)
{
    bool running, paused;
    struct sg_error e;
    static const char *const bad[] = {"", "stopped", "running,", ",paused", "Running", "running "};

    EXPECT(filter_states("running", &running, &paused, &e) == 0 && running && !paused);
    EXPECT(filter_states("paused", &running, &paused, &e) == 0 && !running && paused);
    EXPECT(filter_states("paused,running", &running, &paused, &e) == 0 && running && paused);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(filter_states(bad[i], &running, &paused, &e) == -EINVAL);
}

TEST(times)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-15T12:00:00Z", 1794744000000000},
        {"2026-11-15T12:00:00.5Z", 1794744000500000},
        {"2026-11-15T12:00:00.123456789Z", 1794744000123456},
        {"2026-11-15T14:00:00+02:00", 1794744000000000},
        {"2026-11-15T14:00:00 02:00", 1794744000000000},
        {"2026-11-15T10:30:00-01:30", 1794744000000000},
    };
    static const char *const bad[] = {"",
                                      "now",
                                      "2026-11-15",
                                      "2026-11-15T12:00:00",
                                      "12345",
                                      "2026-11-15T12:00:00Zx",
                                      "2026-11-15T12:00:00+2",
                                      "2026-13-15T12:00:00Z",
                                      "2026-11-15T12:00:00+25:00"};
    struct sg_error e;
    int64_t us;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        EXPECT(filter_time(good[i].text, &us, &e) == 0 && us == good[i].us);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        EXPECT(filter_time(bad[i], &us, &e) == -EINVAL);
}

TEST(times_are_written_with_milliseconds)
{
    char text[CLOCK_TEXT_LEN];

    clock_text(1794744000123, text);
    EXPECT_STR(text, "2026-11-15T12:00:00.123Z");
    clock_text(0, text);
    EXPECT_STR(text, "1970-01-01T00:00:00.000Z");
    clock_text(-5, text);
    EXPECT_STR(text, "1970-01-01T00:00:00.000Z");
    clock_text(INT64_MAX, text);
    EXPECT_STR(text, "1970-01-01T00:00:00.000Z");
}

TEST(ids_lose_an_old_suffix)
{
    char id[ID_LEN + 1];

    EXPECT(e2b_short_id("abcdefghij0123456789", id) == 0);
    EXPECT_STR(id, "abcdefghij0123456789");
    EXPECT(e2b_short_id("abcdefghij0123456789-6532622b", id) == 0);
    EXPECT_STR(id, "abcdefghij0123456789");
    EXPECT(e2b_short_id("short", id) == 0);
    EXPECT_STR(id, "short");
    EXPECT(e2b_short_id("abcdefghij01234567890", id) == 0);
    EXPECT_STR(id, "");
    EXPECT(e2b_short_id("a-b-c", id) == 0);
    EXPECT_STR(id, "a");
    EXPECT(e2b_short_id("", id) == -EINVAL);
    EXPECT(e2b_short_id("-x", id) == -EINVAL);
    EXPECT(e2b_short_id("ABC", id) == -EINVAL);
    EXPECT(e2b_short_id("a/b", id) == -EINVAL);
}

static const unsigned char page_key[PAGE_KEY_LEN] = {1, 2, 3};
#define TENANT "tenant00000000000000"

TEST(token_brings_back_what_it_was_made_of)
{
    struct page_cursor c = {.at = 1794744000123,
                            .id = "abcdefghij0123456789",
                            .list = PAGE_SANDBOXES,
                            .ascending = true},
                       got;
    char token[PAGE_TOKEN_LEN + 1];

    page_token_make(page_key, TENANT, &c, token);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, true, token, &got) == 0);
    EXPECT(got.at == c.at && got.ascending);
    EXPECT_STR(got.id, c.id);
    c = (struct page_cursor){.at = -1, .list = PAGE_SNAPSHOTS};
    page_token_make(page_key, TENANT, &c, token);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SNAPSHOTS, false, token, &got) == 0);
    EXPECT(got.at == -1);
    EXPECT_STR(got.id, "");
}

TEST(token_is_for_one_list_and_one_tenant)
{
    struct page_cursor c = {.at = 7, .list = PAGE_SANDBOXES}, got;
    unsigned char other_key[PAGE_KEY_LEN] = {9};
    char token[PAGE_TOKEN_LEN + 1];

    page_token_make(page_key, TENANT, &c, token);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, token, &got) == 0);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, true, token, &got) == -EINVAL);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SNAPSHOTS, false, token, &got) == -EINVAL);
    EXPECT(page_token_read(page_key, "tenant00000000000001", PAGE_SANDBOXES, false, token, &got) ==
           -EINVAL);
    EXPECT(page_token_read(other_key, TENANT, PAGE_SANDBOXES, false, token, &got) == -EINVAL);
}

TEST(changed_token_is_refused)
{
    struct page_cursor c = {.at = 7, .id = "abcdefghij0123456789", .list = PAGE_SANDBOXES}, got;
    char token[PAGE_TOKEN_LEN + 2];

    page_token_make(page_key, TENANT, &c, token);
    size_t len = strlen(token);
    for (size_t i = 0; i < len; i++) {
        char was = token[i];

        token[i] = was == '0' ? '1' : '0';
        EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, token, &got) == -EINVAL);
        token[i] = was == 'a' ? 'A' : was; /* another spelling of the same is none of ours */
        EXPECT(was != 'a' ||
               page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, token, &got) == -EINVAL);
        token[i] = was;
    }
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, "", &got) == -EINVAL);
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, "x", &got) == -EINVAL);
    token[len] = '0';
    token[len + 1] = '\0';
    EXPECT(page_token_read(page_key, TENANT, PAGE_SANDBOXES, false, token, &got) == -EINVAL);
}
