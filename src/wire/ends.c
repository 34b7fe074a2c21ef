#include "wire/ends.h"

#include "wire/warden.h"

static const struct end_kind kinds[] = {
    [END_KILLED] = {"killed", "killed", FAULT_SANDBOX, true},
    [END_EXPIRED] = {"expired", "its timeout expired", FAULT_SANDBOX, true},
    [END_DIED] = {"died", "its first process died", FAULT_AGENT, false},
    [END_FAILED] = {"failed", "the server failed", FAULT_INFRASTRUCTURE, false},
    [END_MEMORY] = {"memory", "it ran out of memory", FAULT_SANDBOX, false},
    [END_TENANT] = {"tenant", "the sandboxes of its tenant ran out of memory", FAULT_SANDBOX,
                    false},
    [END_MACHINE] = {"machine", "the machine ran out of memory", FAULT_INFRASTRUCTURE, false},
};
_Static_assert(ARRAY_SIZE(kinds) == END_MAX_, "a line for each end");

const struct end_kind *end_kind(uint32_t end)
{
    return &kinds[end > 0 && end < END_MAX_ ? end : END_FAILED];
}

const char *end_text(uint32_t end, const char *detail)
{
    return detail && detail[0] ? detail : end_kind(end)->text;
}
