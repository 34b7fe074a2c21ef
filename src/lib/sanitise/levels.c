/* Decides which mode counts: that of the most special level, unless a level above forbids to switch
 * off. */

#include "lib/sanitise/sanitise.h"

static const char *const mode_names[SANITISE_MODE_MAX_] = {
    [SANITISE_ENFORCE] = "enforce",
    [SANITISE_REPORT] = "report-only",
    [SANITISE_OFF] = "off",
};

const char *sanitise_mode_name(enum sanitise_mode m)
{
    return m < SANITISE_MODE_MAX_ ? mode_names[m] : "enforce";
}

int sanitise_mode_parse(const char *name, enum sanitise_mode *ret)
{
    for (unsigned m = 0; m < SANITISE_MODE_MAX_; m++) {
        if (strcmp(name, mode_names[m]) == 0) {
            *ret = (enum sanitise_mode)m;
            return 0;
        }
    }
    return -EINVAL;
}

enum sanitise_mode sanitise_resolve(enum sanitise_mode normal, const struct sanitise_level *levels,
                                    size_t n, bool *ret_refused)
{
    enum sanitise_mode mode = normal;
    bool no_off = false, refused = false;

    for (size_t i = 0; i < n; i++) {
        if (levels[i].set) {
            refused = no_off && levels[i].mode == SANITISE_OFF;
            if (!refused)
                mode = levels[i].mode;
        }
        no_off = no_off || levels[i].no_off;
    }
    if (ret_refused)
        *ret_refused = refused;
    return mode;
}
