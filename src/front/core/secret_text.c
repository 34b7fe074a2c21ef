#include "front/core/secret_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "front/core/hostname.h"

#define METADATA_ENTRIES 32
#define KEY_MAX          128
#define VALUE_MAX        1024
#define HEADER_MAX       64
#define LIST_MAX         32 /* entries, of hosts and of headers */
#define NAME_CHARS       "abcdefghijklmnopqrstuvwxyz0123456789_-"
#define TOKEN_CHARS      "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~"
#define PROXY_NAME       "egress-proxy" /* seals a proxy's password: policy_document.h */

static void lower(char *s)
{
    for (; *s; s++)
        *s = (char)tolower((unsigned char)*s);
}

int secret_name(const char *text, size_t len, char ret[SECRET_NAME_MAX + 1])
{
    char name[SECRET_NAME_MAX + 1];

    if (len == 0 || len > SECRET_NAME_MAX)
        return -EINVAL;
    memcpy(name, text, len);
    name[len] = '\0';
    lower(name);
    if (strspn(name, NAME_CHARS) != len || strncmp(name, "sec_", 4) == 0 ||
        strcmp(name, PROXY_NAME) == 0)
        return -EINVAL;
    memcpy(ret, name, len + 1);
    return 0;
}

bool secret_mentioned(const char *text, struct secret_mention *ret)
{
    const char *at = strstr(text, SECRET_MARK);
    const char *name = at ? at + strlen(SECRET_MARK) : NULL;
    const char *close = name ? strchr(name, '}') : NULL;

    if (!close)
        return false;
    *ret = (struct secret_mention){.name = name, .len = (size_t)(close - name), .end = close + 1};
    return true;
}

bool secret_mention_whole(const char *text, struct secret_mention *ret)
{
    return strncmp(text, SECRET_MARK, strlen(SECRET_MARK)) == 0 && secret_mentioned(text, ret) &&
           !*ret->end;
}

/* ---- lists with commas between --------------------------------------------------------------- */

/* Takes the next entry of a list, in lower case and without blanks around it; false at the end. An
 * entry that does not fit comes back empty, which is never valid. */
static bool next_entry(const char **at, char *ret, size_t cap)
{
    const char *p = *at;

    if (!p)
        return false;
    size_t whole = strcspn(p, ","), len = whole;
    *at = p[whole] ? p + whole + 1 : NULL;
    while (len > 0 && strchr(" \t", *p))
        p++, len--;
    while (len > 0 && strchr(" \t", p[len - 1]))
        len--;
    snprintf(ret, cap, "%.*s", len < cap ? (int)len : 0, p);
    lower(ret);
    return true;
}

/* Whether s is a host name and not an address: certificates and the Host header have names. */
static bool is_host(const char *s)
{
    const char *last = strrchr(s, '.');

    last = last ? last + 1 : s;
    return hostname_pattern_valid(s) && strspn(last, "0123456789") != strlen(last);
}

static bool is_header(const char *s)
{
    return *s && strspn(s, TOKEN_CHARS) == strlen(s);
}

static int check_list(const json_t *metadata, const char *key, size_t max,
                      bool (*right)(const char *), const char *what, struct sg_error *e)
{
    const char *at = jr_text_or(metadata, key, NULL);
    char entry[HOSTNAME_MAX + 1];

    for (int n = 0; next_entry(&at, entry, max + 1); n++) {
        if (n == LIST_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "Invalid metadata: '%s' has more than %d",
                           key, LIST_MAX);
        if (!right(entry))
            return err_invalid(
                e,
                "Invalid metadata: '%s' is a list of %s with commas between; '%s' is "
                "none",
                key, what, entry);
    }
    return 0;
}

static json_t *read_list(const json_t *metadata, const char *key, const char *fallback)
{
    const char *at = jr_text_or(metadata, key, fallback);
    char entry[HOSTNAME_MAX + 1];
    json_t *list = json_array();

    while (next_entry(&at, entry, sizeof(entry)))
        json_array_append_new(list, json_string(entry));
    return list;
}

json_t *secret_hosts(const json_t *metadata)
{
    return read_list(metadata, SECRET_HOSTS_KEY, NULL);
}

json_t *secret_headers(const json_t *metadata)
{
    return read_list(metadata, SECRET_HEADERS_KEY, SECRET_HEADERS);
}

int secret_metadata_check(const json_t *metadata, struct sg_error *e)
{
    /* The iterator does not change the object, though its type does not promise that. */
    json_t *walk = (json_t *)(uintptr_t)metadata;
    size_t bytes = 0;

    if (json_object_size(metadata) > METADATA_ENTRIES)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "Invalid metadata: more than %d entries",
                       METADATA_ENTRIES);
    for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
        const char *key = json_object_iter_key(at);
        size_t len = json_string_length(json_object_iter_value(at));

        if (strlen(key) > KEY_MAX || len > VALUE_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG,
                           "Invalid metadata: a key has at most %d bytes, a value %d: '%.64s'",
                           KEY_MAX, VALUE_MAX, key);
        bytes += strlen(key) + len;
    }
    if (bytes > SECRET_METADATA_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "Invalid metadata: more than %d bytes",
                       SECRET_METADATA_MAX);
    int r = check_list(metadata, SECRET_HOSTS_KEY, HOSTNAME_MAX, is_host,
                       "names of hosts (api.example.com, *.example.com)", e);
    return r < 0 ? r
                 : check_list(metadata, SECRET_HEADERS_KEY, HEADER_MAX, is_header,
                              "names of headers (authorization, x-api-key)", e);
}
