#include "engine/control.h"

#ifdef SG_CONTROL
#include <stdio.h>
#include <string.h>

#include "lib/base/base.h"
#include "inside/stage/layers.h"

static const struct {
    const char *name;
    unsigned layer;
} names[] = {
    {"seccomp", LAYER_SECCOMP}, {"nested-ns", LAYER_NESTED_NS}, {"caps", LAYER_CAPS},
    {"nnp", LAYER_NNP},         {"proc-mask", LAYER_PROC_MASK}, {"rlimits", LAYER_RLIMITS},
    {"cgroup", LAYER_CGROUP},   {"disk", LAYER_DISK},           {"netns", LAYER_NETNS},
    {"uids", LAYER_UIDS},       {"agent", LAYER_AGENT},         {"pivot", LAYER_PIVOT},
};

static unsigned layer_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].layer;
    fprintf(stderr, "SANDGLASS_CONTROL_OMIT: unknown layer '%s'\n", name);
    exit(2);
}

unsigned control_omit(void)
{
    AUTO(free_p) char *list = xstrdup(getenv("SANDGLASS_CONTROL_OMIT") ?: "");
    char *save = NULL;
    unsigned omit = 0;

    for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save))
        omit |= layer_of(p);
    return omit;
}
#else
typedef int control_build_only; /* ISO C wants something in every file */
#endif
