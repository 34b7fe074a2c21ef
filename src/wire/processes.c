#include "wire/processes.h"

#include "lib/base/err.h"

const char *process_name(enum process p)
{
    static const char *const names[] = {"front",   "guard",  "clerk", "herald",
                                        "spawner", "broker", "holder"};
    _Static_assert(ARRAY_SIZE(names) == PROCESS_MAX_, "every process has a name");

    return names[p];
}
