/* The processes of a server that the warden starts and watches, and the ways in which they fail:
 * for the log and the metrics. */
#pragma once

enum process {
    PROCESS_FRONT,
    PROCESS_GUARD,
    PROCESS_DBWORKER,
    PROCESS_EXPORTER,
    PROCESS_SPAWNER, /* this and those below belong to a tenant's domain (warden/host/domain.h) */
    PROCESS_BROKER,
    PROCESS_HOLDER,
    PROCESS_MAX_
};

enum process_fault {
    PROCESS_EXITED,  /* by itself */
    PROCESS_KILLED,  /* by a signal: a bug of its own, or somebody sent one */
    PROCESS_STOPPED, /* it was stopped, and killed for that; a holder was continued */
    PROCESS_SILENT,  /* it did not answer, and was killed for that; a holder was continued */
    PROCESS_FAULT_MAX_
};

const char *process_name(enum process p);
