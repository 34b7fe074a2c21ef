#include "lib/base/fault.h"

#include <stdarg.h>
#include <stdio.h>

int err_internal(struct sg_error *e, int r, const char *fmt, ...)
{
    char message[sizeof(e->message)];
    va_list ap;

    if (r == 0)
        return 0;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    err_code(e, r, "%s", message);
    if (e)
        e->kind = SG_ERR_INTERNAL;
    return r;
}
