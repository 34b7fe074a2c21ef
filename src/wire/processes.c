#include "wire/processes.h"

#include "lib/base/err.h"

const char *process_name(enum process p)
{
    static const char *const names[] = {"front",   "guard",  "clerk", "herald",
                                        "spawner", "broker", "holder"};
    _Static_assert(ARRAY_SIZE(names) == PROCESS_MAX_, "every process has a name");

    return names[p];
}

const char *process_fault_name(enum process_fault f)
{
    static const char *const names[] = {"exited", "killed", "stopped", "silent"};
    _Static_assert(ARRAY_SIZE(names) == PROCESS_FAULT_MAX_, "every fault has a name");

    return names[f];
}
