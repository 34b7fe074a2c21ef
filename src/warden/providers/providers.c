/* All providers: a new one is a row here. */
#include "warden/providers/process/process.h"

const struct provider_ops *const providers[] = {
    &process_provider,
    NULL,
};
