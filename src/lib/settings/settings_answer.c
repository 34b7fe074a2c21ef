#include "lib/settings/settings_answer.h"

#include "lib/base/fd.h"
#include "lib/base/filter.h"

static int read_file(const char *name, int file, struct settings *s, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len;
    int r = fd_read_all(file, SETTINGS_TEXT_MAX, &text, &len);

    if (r < 0)
        return err_set(e, err_kind_of(-r), r, "cannot read configuration '%.128s': %s", name,
                       strerror(-r));
    if (strlen(text) != len)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "configuration '%.128s' has a NUL byte", name);
    return settings_parse_text(s, name, text, e);
}

int settings_read(const struct settings_source *from, int file, struct settings *ret,
                  struct sg_error *e)
{
    struct settings s;
    int r = 0;

    settings_init(&s);
    if (file >= 0)
        r = read_file(from->config, file, &s, e);
    if (r == 0)
        r = settings_parse_env(&s, e);
    for (enum setting k = 0; k < SETTING_MAX_ && r == 0; k++) {
        char flag[SETTINGS_ENV_MAX], what[SETTINGS_ENV_MAX + 2];
        setting_flag(k, flag);
        snprintf(what, sizeof(what), "--%s", flag);
        if (from->flags[k])
            r = settings_set(&s, k, what, from->flags[k], e);
    }
    if (r == 0)
        r = settings_check(&s, e);
    if (r == 0)
        *ret = s;
    return r;
}

static int add_addresses(struct settings_answer *a, const char *what, const char *list,
                         struct sg_error *e)
{
    struct address one;
    int r;

    while ((r = address_next(what, &list, &one, e)) > 0) {
        if (a->n_addresses == SETTINGS_ADDRESSES_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "more than %d addresses to listen on",
                           SETTINGS_ADDRESSES_MAX);
        a->addresses[a->n_addresses++] = one;
    }
    return r;
}

static void keep_fixed(struct settings_answer *a, const struct settings *now)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        if (!setting_info(k)->fixed)
            continue;
        if (!settings_same(now, &a->settings, k))
            snprintf(a->changed[a->n_changed++], SETTINGS_ENV_MAX, "%s", setting_info(k)->key);
        settings_copy(&a->settings, now, k);
    }
}

static void print(const struct settings *s, struct settings_text *ret)
{
    AUTO(strbuf_done) struct strbuf text = {0};

    strbuf_init(&text, sizeof(ret->text));
    settings_print(s, &text);
    memcpy(ret->text, text.buf, text.len);
    ret->len = text.len;
}

static int make(const struct settings_source *from, int file, const struct settings *now,
                struct settings_answer *a)
{
    struct sg_error *e = &a->error;
    struct settings told;
    int r = filter_load(&(struct filter){0}, "settings", e);

    if (r == 0)
        r = settings_read(from, file, &a->settings, e);
    if (r == 0 && now)
        keep_fixed(a, now);
    if (r == 0 && !now)
        r = add_addresses(a, "listen", a->settings.listen, e);
    a->n_plain = a->n_addresses;
    if (r == 0 && !now)
        r = add_addresses(a, "metrics_listen", a->settings.metrics_listen, e);
    if (r < 0)
        return r;
    a->store = settings_store(&a->settings);
    print(&a->settings, &a->front);
    /* The guard reads bytes of the internet, so it gets no passwords and tokens. */
    told = a->settings;
    settings_forget_secrets(&told);
    print(&told, &a->guard);
    return 0;
}

void settings_answer(const struct settings_source *from, int file, const struct settings *now,
                     struct settings_answer *ret)
{
    ret->r = make(from, file, now, ret);
}
