#include <string.h>

#include "lib/base/clock.h"
#include "front/store/contexts_common.h"

static const char *const names[] = {
    [CTX_CREATING] = "creating",
    [CTX_READY] = "ready",
    [CTX_TERMINATED] = "terminated",
    [CTX_ERROR] = "error",
};
_Static_assert(ARRAY_SIZE(names) == CTX_STATUS_MAX_, "a name for each status");

const char *ctx_status_text(enum ctx_status s)
{
    return names[s];
}

bool ctx_status_parse(const char *text, enum ctx_status *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i], text) == 0) {
            *ret = (enum ctx_status)i;
            return true;
        }
    return false;
}

int ctx_error_unavailable(struct sg_error *e, const char *why)
{
    return err_set(e, SG_ERR_LIMIT, -EAGAIN, "contexts are not available now: %s", why);
}

int ctx_error_tenant_limit(struct sg_error *e, uint32_t limit)
{
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "limit reached: %u sandboxes of contexts at a time for this tenant; end one, or "
                   "wait until one expires",
                   limit);
}

int ctx_error_conversation_limit(struct sg_error *e, uint32_t limit)
{
    return err_set(e, SG_ERR_LIMIT, -EDQUOT,
                   "limit reached: %u sandboxes of contexts at a time for one conversation; end "
                   "one, or wait until one expires",
                   limit);
}

int ctx_error_unknown(struct sg_error *e, const char *id)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "no context '%.40s'", id);
}

int ctx_error_active(struct sg_error *e, const char *path)
{
    return err_set(e, SG_ERR_GONE, -EEXIST, "path '%.64s' has a context already", path);
}

int ctx_error_stale(struct sg_error *e, const char *id)
{
    return err_set(e, SG_ERR_GONE, -ESTALE, "context '%.40s' has changed meanwhile", id);
}

void ctx_clean_text(char *ret, size_t cap, const char *text)
{
    size_t len = strnlen(text, cap - 1);

    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++)
        ret[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? ' ' : text[i];
    ret[len] = '\0';
}

void ctx_day(int64_t ms, char ret[CTX_DAY_LEN + 1])
{
    char text[CLOCK_TEXT_LEN];

    clock_text(ms, text);
    snprintf(ret, CTX_DAY_LEN + 1, "%.*s", CTX_DAY_LEN, text);
}

void ctx_usage_sum(struct ctx_usage *sum, const struct ctx_usage *more)
{
#define ADD(name) sum->name += more->name;
    CTX_USAGE(ADD)
#undef ADD
}
