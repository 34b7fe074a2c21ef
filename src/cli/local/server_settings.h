/* The settings of this machine's server, for verbs that follow its rules. */
#pragma once

#include "lib/settings/settings.h"

/* Reads the configuration file, if there is one, and the environment. */
int server_settings(struct settings *ret, struct sg_error *e);
