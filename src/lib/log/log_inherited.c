/* For the processes that the warden starts. */
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/log/log.h"

void log_to_inherited_file(void)
{
    struct stat st;

    if (fstat(LOG_FILE_FD, &st) == 0 && S_ISREG(st.st_mode) &&
        fcntl(LOG_FILE_FD, F_SETFD, FD_CLOEXEC) == 0)
        log_to_file(LOG_FILE_FD);
}
