#include "front/e2b/ref.h"

#include <ctype.h>

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static int parse_part(const char *what, const char *chars, const char *p, size_t len,
                      char ret[STORE_NAME_MAX + 1], struct sg_error *e)
{
    char part[STORE_NAME_MAX + 1];

    while (len > 0 && isspace((unsigned char)p[0])) {
        p++;
        len--;
    }
    while (len > 0 && isspace((unsigned char)p[len - 1]))
        len--;
    if (len <= STORE_NAME_MAX) {
        for (size_t i = 0; i < len; i++)
            part[i] = (char)tolower((unsigned char)p[i]);
        part[len] = '\0';
    }
    if (len == 0 || len > STORE_NAME_MAX || strspn(part, chars) != len)
        return err_invalid(e, "invalid %s: %.*s", what, (int)(len < 80 ? len : 80), p);
    memcpy(ret, part, len + 1);
    return 0;
}

int template_ref_parse(const char *text, struct template_ref *ret, struct sg_error *e)
{
    struct template_ref ref = {.tag = REF_DEFAULT_TAG};
    size_t head = strcspn(text, ":"), slash = strcspn(text, "/");
    const char *name = text;
    int r = 0;

    if (text[head]) {
        ref.tagged = true;
        r = parse_part("tag", NAME_CHARS ".", text + head + 1, strlen(text + head + 1), ref.tag, e);
    }
    if (r == 0 && slash < head) {
        r = parse_part("namespace", NAME_CHARS, text, slash, ref.space, e);
        name = text + slash + 1;
    }
    if (r == 0)
        r = parse_part("template ID", NAME_CHARS, name, (size_t)(text + head - name), ref.name, e);
    if (r == 0)
        *ret = ref;
    return r;
}

int template_ref_own(const struct template_ref *ref, const char *tenant_name, struct sg_error *e)
{
    if (!ref->space[0] || strcmp(ref->space, tenant_name) == 0)
        return 0;
    return err_invalid(e, "namespace '%s' must match your team '%s'", ref->space, tenant_name);
}

void template_ref_text(const struct template_ref *ref, char ret[REF_TEXT_MAX + 1])
{
    snprintf(ret, REF_TEXT_MAX + 1, "%s%s%s", ref->space, ref->space[0] ? "/" : "", ref->name);
}
