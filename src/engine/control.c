#include "engine/control.h"

#ifdef SG_CONTROL
#include <stdio.h>
#include <string.h>

#include "lib/base/base.h"
#include "inside/stage/defences.h"

static const struct {
    const char *name;
    unsigned layer;
} names[] = {
    {"seccomp", DEFENCE_SECCOMP}, {"nested-ns", DEFENCE_NESTED_NS}, {"caps", DEFENCE_CAPS},
    {"nnp", DEFENCE_NNP},         {"proc-mask", DEFENCE_PROC_MASK}, {"rlimits", DEFENCE_RLIMITS},
    {"cgroup", DEFENCE_CGROUP},   {"disk", DEFENCE_DISK},           {"netns", DEFENCE_NETNS},
    {"uids", DEFENCE_UIDS},       {"agent", DEFENCE_AGENT},         {"pivot", DEFENCE_PIVOT},
};

static unsigned defence_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].layer;
    fprintf(stderr, "SANDGLASS_CONTROL_OMIT: unknown defence '%s'\n", name);
    exit(2);
}

unsigned control_omit(void)
{
    AUTO(free_p) char *list = xstrdup(getenv("SANDGLASS_CONTROL_OMIT") ?: "");
    char *save = NULL;
    unsigned omit = 0;

    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save))
        omit |= defence_of(p);
    return omit;
}
#else
typedef int control_build_only; /* ISO C wants something in every file */
#endif
