/* The settings of a server, as the warden gets them: the file, the environment and the flags are
 * read by a child that has no rights (warden/config.c), and this structure is all that comes back.
 * So the process that is root parses no settings. */
#pragma once

#include "lib/settings/address.h"
#include "lib/settings/settings.h"

#define SETTINGS_ADDRESSES_MAX 16

/* Where the settings come from. A flag overrides the environment, which overrides the file. */
struct settings_source {
    const char *config;              /* its name, for errors */
    const char *flags[SETTING_MAX_]; /* as given; NULL: not given */
};

/* All settings, in the form of the file. */
struct settings_text {
    size_t len;
    char text[SETTINGS_TEXT_MAX];
};

struct settings_answer {
    int r; /* 0, or the error's code: only `error` is valid then */
    struct sg_error error;
    struct settings settings;
    enum settings_store store;
    struct settings_text front, guard; /* the guard's is without secrets */
    /* At the start: the addresses of `listen`, then those of `metrics_listen`. */
    struct address addresses[SETTINGS_ADDRESSES_MAX];
    size_t n_addresses, n_plain; /* n_plain: those of `listen` */
    /* Later: the keys that have changed and need a restart. `settings` has their old values. */
    char changed[SETTING_MAX_][SETTINGS_ENV_MAX];
    size_t n_changed;
};

/* file: the configuration, open; -1: there is none. */
int settings_read(const struct settings_source *from, int file, struct settings *ret,
                  struct sg_error *e);
/* For the child: gives up what it does not need, and makes the answer. now: the settings in force,
 * or NULL at the start. */
void settings_answer(const struct settings_source *from, int file, const struct settings *now,
                     struct settings_answer *ret);
