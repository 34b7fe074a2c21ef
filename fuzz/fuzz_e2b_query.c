/* Texts of queries and paths: metadata filters, states, times, tokens of pages, references of
 * templates, ids. The first byte chooses. */
#include <assert.h>
#include <stdint.h>

#include "front/e2b/filter.h"
#include "front/e2b/page.h"
#include "front/e2b/ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[PAGE_KEY_LEN] = {7};

static void check_error(const struct sg_error *e)
{
    assert(e->kind == SG_ERR_INVALID && e->code < 0 && e->message[0] != '\0');
}

static void fuzz_metadata(const char *text)
{
    json_t *pairs = NULL;
    struct sg_error e = {0};

    if (filter_metadata(text, &pairs, &e) < 0) {
        check_error(&e);
        return;
    }
    assert(json_object_size(pairs) >= 1 && filter_matches(pairs, pairs));
    assert(!filter_matches(pairs, NULL));
    json_decref(pairs);
}

static void fuzz_filters(const char *text)
{
    struct sg_error e = {0};
    bool running = false, paused = false;
    int64_t us;

    if (filter_states(text, &running, &paused, &e) < 0)
        check_error(&e);
    else
        assert(running || paused);
    if (filter_time(text, &us, &e) < 0)
        check_error(&e);
}

/* Nobody can make one without the key, so what is read must have been made here. */
static void fuzz_token(const char *text)
{
    struct page_cursor c;

    assert(page_token_read(key, "tenant00000000000000", PAGE_SANDBOXES, false, text, &c) < 0);
}

/* A cursor of any bytes comes back as it was. */
static void fuzz_cursor(const uint8_t *data, size_t size)
{
    struct page_cursor c = {.list = PAGE_SNAPSHOTS, .ascending = size % 2}, got;
    char token[PAGE_TOKEN_LEN + 1];

    memcpy(&c.at, data, size < sizeof(c.at) ? size : sizeof(c.at));
    page_token_make(key, "t", &c, token);
    assert(page_token_read(key, "t", PAGE_SNAPSHOTS, c.ascending, token, &got) == 0);
    assert(got.at == c.at &&
           page_token_read(key, "u", PAGE_SNAPSHOTS, c.ascending, token, &got) < 0);
}

static void fuzz_ref(const char *text)
{
    struct template_ref ref, again;
    struct sg_error e = {0};
    char plain[REF_TEXT_MAX + 1];

    if (template_ref_parse(text, &ref, &e) < 0) {
        check_error(&e);
        return;
    }
    assert(ref.name[0] && ref.tag[0]);
    template_ref_text(&ref, plain);
    assert(template_ref_parse(plain, &again, &e) == 0 && strcmp(again.name, ref.name) == 0);
}

static void fuzz_id(const char *text)
{
    char id[ID_LEN + 1];

    if (e2b_short_id(text, id) == 0)
        assert(strlen(id) <= ID_LEN && !strchr(id, '-') && strncmp(id, text, strlen(id)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    assert(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] == 'm')
        fuzz_metadata(text);
    else if (data[0] == 'f')
        fuzz_filters(text);
    else if (data[0] == 't')
        fuzz_token(text);
    else if (data[0] == 'c')
        fuzz_cursor(data + 1, size - 1);
    else if (data[0] == 'r')
        fuzz_ref(text);
    else
        fuzz_id(text);
    free(text);
    return 0;
}
