/* /etc/passwd and /etc/group, as root inside may have written them: whatever is found is in its
 * bounds. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/accounts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct agent_user *u)
{
    assert(u->name[0] != '\0' && strlen(u->name) <= OPS_NAME_MAX);
    assert(!strpbrk(u->name, ":\n") && u->uid < AGENT_UID && u->gid < AGENT_UID);
}

/* The first byte says which id is looked for, or how long the name is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    typedef bool find_fn(char *text, const char *name, uint32_t id, struct agent_user *ret);
    static find_fn *const finds[] = {accounts_find_user, accounts_find_group};
    struct agent_user found;

    for (size_t i = 0; len > 0 && i < 2 * ARRAY_SIZE(finds); i++) {
        /* Of its own size, so that a byte read beyond its end is found. */
        AUTO(free_p) char *text = xcalloc(1, len);
        char name[OPS_NAME_MAX + 1];
        bool by_name = i % 2 == 0;

        memcpy(text, data + 1, len - 1);
        snprintf(name, sizeof(name), "%.*s", data[0] % OPS_NAME_MAX, text);
        if (!finds[i / 2](text, by_name ? name : NULL, data[0], &found))
            continue;
        check(&found);
        assert(by_name ? strcmp(found.name, name) == 0 : found.uid == data[0]);
        if (i / 2 == 0)
            assert(found.home[0] == '/' && found.shell[0] == '/');
    }
    return 0;
}
