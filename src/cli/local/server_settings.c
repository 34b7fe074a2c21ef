#include "cli/local/server_settings.h"

#include "warden/server.h"

int server_settings(struct settings *ret, struct sg_error *e)
{
    static const struct settings_source from = {.config = SERVE_CONFIG};
    AUTO(close_p) int fd = -1;
    int r = serve_open_config(NULL, &fd, e);

    return r < 0 ? r : settings_read(&from, fd, ret, e);
}
