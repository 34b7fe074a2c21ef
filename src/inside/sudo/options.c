#include "inside/sudo/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inside/agent/accounts.h"

static const char usage[] =
    "usage: sudo [-EHins] [-u USER] [-D DIR] [NAME=VALUE...] [COMMAND [ARG...]]\n"
    "       sudo -l | -v | -k\n"
    "\n"
    "Runs a command as another user of this sandbox, root by default. No password is asked.\n"
    "  -u, --user=USER          a name, or an id such as '#0'\n"
    "  -i, --login              a login shell, in the user's home; COMMAND is run by it\n"
    "  -s, --shell              a shell; COMMAND is run by it\n"
    "  -E, --preserve-env       keep the environment; --preserve-env=A,B keeps these variables\n"
    "  -H, --set-home           set HOME also with -E\n"
    "  -D, --chdir=DIR          run in this directory\n"
    "  -l, --list               show what is allowed\n"
    "  -n, -S, -A, -p PROMPT    accepted: there is no password\n"
    "  -k, -K, -v               accepted: there is nothing to forget or to renew\n"
    "  -V, --version, -h, --help\n";

void sudo_die(const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(stderr, "sudo: %s\n", line);
    exit(1);
}

static const struct agent_user *find_user(const char *name)
{
    static struct agent_user user;

    if (!account_user(name + (name[0] == '#'), &user))
        sudo_die("unknown user %s", name);
    return &user;
}

static _Noreturn void print_allowed(void)
{
    const struct agent_user *self = agent_user_by_uid(getuid());

    printf("User %s may run the following commands in this sandbox:\n"
           "    (ALL : ALL) NOPASSWD: ALL\n",
           self ? self->name : "nobody");
    exit(0);
}

static _Noreturn void print_and_exit(const char *text)
{
    fputs(text, stdout);
    exit(0);
}

static const struct option long_options[] = {
    {"user", required_argument, NULL, 'u'},
    {"login", no_argument, NULL, 'i'},
    {"shell", no_argument, NULL, 's'},
    {"preserve-env", optional_argument, NULL, 'E'},
    {"set-home", no_argument, NULL, 'H'},
    {"chdir", required_argument, NULL, 'D'},
    {"list", no_argument, NULL, 'l'},
    {"validate", no_argument, NULL, 'v'},
    {"reset-timestamp", no_argument, NULL, 'k'},
    {"remove-timestamp", no_argument, NULL, 'K'},
    {"non-interactive", no_argument, NULL, 'n'},
    {"stdin", no_argument, NULL, 'S'},
    {"askpass", no_argument, NULL, 'A'},
    {"prompt", required_argument, NULL, 'p'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Takes one option. True if it needs no command. */
static bool take_option(struct sudo_options *o, int option)
{
    switch (option) {
    case 'u':
        o->target = find_user(optarg);
        return false;
    case 'i':
        o->login = true;
        return false;
    case 's':
        o->shell = true;
        return false;
    case 'E':
        if (optarg)
            o->keep_list = optarg;
        else
            o->keep_env = true;
        return false;
    case 'H':
        o->set_home = true;
        return false;
    case 'D':
        o->chdir = optarg;
        return false;
    case 'l':
        print_allowed();
    case 'V':
        print_and_exit(SUDO_VERSION "\n");
    case 'h':
        print_and_exit(usage);
    case 'v':
    case 'k':
    case 'K':
        return true;
    case 'n':
    case 'S':
    case 'A':
    case 'p':
        return false;
    default: /* getopt has printed the mistake */
        exit(1);
    }
}

static bool is_assignment(const char *arg)
{
    return arg[0] != '=' && strchr(arg, '=') && !strchr(arg, '/');
}

void options_parse(int argc, char **argv, struct sudo_options *ret)
{
    struct sudo_options o = {.target = agent_user_find("root")};
    bool nothing_to_run = false;
    int option;

    /* '+': options after the command belong to the command */
    while ((option = getopt_long(argc, argv, "+u:isEHD:lvkKnSAp:Vh", long_options, NULL)) >= 0)
        nothing_to_run |= take_option(&o, option);
    o.assignments = argv + optind;
    while (optind < argc && is_assignment(argv[optind])) {
        o.n_assignments++;
        optind++;
    }
    o.command = argv + optind;
    if (!o.command[0] && nothing_to_run)
        exit(0);
    if (o.login && o.shell)
        sudo_die("-i and -s are two kinds of shell: use one");
    if (!o.command[0] && !o.login && !o.shell) {
        fputs(usage, stderr);
        exit(1);
    }
    *ret = o;
}
