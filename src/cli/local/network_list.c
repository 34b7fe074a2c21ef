#include "cli/local/network_list.h"

#include <string.h>

#include "engine/sandbox.h"

void network_list_done(struct network_list *l)
{
    free(l->allow);
    free(l->deny);
    free(l->text);
    *l = (struct network_list){0};
}

/* Refuses a name without a dot: nobody could look it up, and the user probably mistyped a word. */
static int check_entry(const char *entry, struct sg_error *e)
{
    if (strcmp(entry, "allow") == 0 || strcmp(entry, "block") == 0)
        return err_invalid(e, "--network: '%s' stands alone: leave it out of the list", entry);
    if (!strpbrk(entry, ".:"))
        return err_invalid(e,
                           "--network '%.64s' is not 'block', 'allow' or a list such as "
                           "example.com,*.example.org,192.0.2.0/24",
                           entry);
    return network_entry_check("--network", entry, e);
}

static int parse_entries(struct network_list *l, struct sg_error *e)
{
    size_t n_allow = 0, n_deny = 0;
    char *rest = l->text, *entry;

    while ((entry = strsep(&rest, ","))) {
        bool denied = entry[0] == '!';
        int r = check_entry(entry + denied, e);
        if (r < 0)
            return r;
        if (n_allow + n_deny == NETWORK_LIST_MAX)
            return err_set(e, SG_ERR_INVALID, -E2BIG, "--network: more than %d entries",
                           NETWORK_LIST_MAX);
        if (denied)
            l->deny[n_deny++] = entry + 1;
        else
            l->allow[n_allow++] = entry;
    }
    l->mode = n_allow > 0 ? SG_NETWORK_LIST : SG_NETWORK_ALLOW;
    return 0;
}

int network_list_parse(struct network_list *l, const char *value, struct sg_error *e)
{
    network_list_done(l);
    if (strcmp(value, "block") == 0 || strcmp(value, "allow") == 0) {
        l->mode = value[0] == 'a' ? SG_NETWORK_ALLOW : SG_NETWORK_BLOCK;
        return 0;
    }
    l->text = xstrdup(value);
    l->allow = xcalloc(NETWORK_LIST_MAX + 1, sizeof(*l->allow));
    l->deny = xcalloc(NETWORK_LIST_MAX + 1, sizeof(*l->deny));
    return parse_entries(l, e);
}
