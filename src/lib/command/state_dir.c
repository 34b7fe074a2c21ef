#include "lib/command/state_dir.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/settings/settings.h"

#define CONFIG_FILE "/etc/sandglass.conf"

int state_dir_find(const char *flag, char ret[STATE_DIR_MAX], struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    struct settings s;
    size_t len;
    int r;

    _Static_assert(sizeof(s.state) == STATE_DIR_MAX, "it fits");
    settings_init(&s);
    r = file_read(AT_FDCWD, CONFIG_FILE, SETTINGS_TEXT_MAX, &text, &len);
    if (r == 0)
        r = settings_parse_text(&s, CONFIG_FILE, text, e);
    else if (r == -ENOENT)
        r = 0;
    else
        r = err_code(e, r, "cannot read '" CONFIG_FILE "'");
    if (r == 0)
        r = settings_parse_env(&s, e);
    if (r == 0 && flag) {
        AUTO(free_p) char *absolute = realpath(flag, NULL);
        r = settings_set(&s, SETTING_state, "--state", absolute ? absolute : flag, e);
    }
    if (r == 0)
        memcpy(ret, s.state, sizeof(s.state));
    return r;
}
