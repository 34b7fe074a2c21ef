#include "warden/processes/faults.h"

#include <stdio.h>

#include "lib/base/signame.h"
#include "warden/server.h"

void fault_count(struct server *s, enum process p, enum process_fault why)
{
    s->faults[p][why]++;
}

void fault_describe(const struct child_exit *how, char ret[FAULT_TEXT])
{
    if (!how->known)
        snprintf(ret, FAULT_TEXT, "ended for an unknown reason");
    else if (how->signalled)
        snprintf(ret, FAULT_TEXT, "was killed by SIG%s", signal_name(how->code));
    else
        snprintf(ret, FAULT_TEXT, "exited with status %d", how->code);
}

void fault_count_end(struct server *s, enum process p, const struct child_exit *how)
{
    fault_count(s, p, how->signalled ? PROCESS_KILLED : PROCESS_EXITED);
}
