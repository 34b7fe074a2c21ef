#include "guard/entries.h"

struct entry_text {
    struct list link;
    char text[];
};

void entries_init(struct entries *l)
{
    *l = (struct entries){.networks = cidr_tree_new(), .names = names_new()};
}

void entries_done(struct entries *l)
{
    LIST_EACH(struct entry_text, t, &l->texts, link)
        free(t);
    cidr_tree_free(l->networks);
    names_free(l->names);
    *l = (struct entries){0};
}

static const char *keep_text(struct entries *l, const char *verb, const char *entry)
{
    size_t size = strlen(verb) + 1 + strlen(entry) + 1;
    struct entry_text *t = xcalloc(1, sizeof(*t) + size);

    snprintf(t->text, size, "%s %s", verb, entry);
    list_push(&l->texts, &t->link);
    return t->text;
}

int entries_add(struct entries *l, const char *verb, const char *entry, struct sg_error *e)
{
    char pattern[POLICY_NAME_MAX + 1];
    struct cidr c;

    if (cidr_parse(entry, &c) == 0) {
        const char *text = keep_text(l, verb, entry);

        if (c.v4 && c.len == 96)
            l->all = text;
        else
            cidr_tree_add(l->networks, &c, text);
        return 0;
    }
    if (name_pattern(entry, pattern) < 0)
        return err_invalid(e,
                           "%s '%.80s': not an address, a network or a name; use for example "
                           "192.0.2.7, 192.0.2.0/24, a.test or *.a.test",
                           verb, entry);
    names_add(l->names, pattern, keep_text(l, verb, entry));
    return 0;
}

const char *entries_address(const struct entries *l, const struct net_addr *a)
{
    const char *rule = cidr_tree_find(l->networks, a);

    return rule ? rule : l->all;
}

const char *entries_name(const struct entries *l, const char *name)
{
    const char *rule = names_find(l->names, name);

    return rule ? rule : l->all;
}
