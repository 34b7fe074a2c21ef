/* The command line of sudo. */
#pragma once

#include "inside/agent/agent.h"
#include "lib/text/strbuf.h"

#define SUDO_VERSION "sudo of Sandglass " SG_VERSION

struct sudo_options {
    const struct agent_user *target;
    bool login, shell, keep_env, set_home;
    const char *keep_list; /* --preserve-env=A,B */
    const char *chdir;
    char **assignments; /* NAME=VALUE before the command, n of them */
    int n_assignments;
    char **command; /* NULL-terminated, may be empty */
};

/* Fills *ret; or prints what was asked for, or one line about a mistake, and exits. */
void options_parse(int argc, char **argv, struct sudo_options *ret);

/* Prints "sudo: ..." and exits with status 1. */
_Noreturn void sudo_die(const char *fmt, ...) PRINTF(1, 2);
