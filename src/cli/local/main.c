/* sandglass: the command line. Each verb has a file of its own; this file has the table of
 * verbs. */
#include <fcntl.h>
#include <stdio.h>

#include "lib/base/base.h"
#include "cli/local/cli.h"
#include "cli/local/delegate.h"
#include "lib/command/suggest.h"
#include "lib/command/ui.h"

struct verb {
    const char *name;
    const char *summary;
    int (*fn)(int argc, char **argv);
};

/* Verbs that talk to a server are in a program of their own: it needs libraries, and this program
 * is small and static. */
static int cmd_client(int argc UNUSED, char **argv)
{
    return delegate("sandglass-client", argv);
}

/* The front's program does the verbs that work on a server's store. */
static int cmd_front(int argc UNUSED, char **argv)
{
    return delegate("sandglass-front", argv);
}

/* The guard's program does the verbs about the record. */
static int cmd_guard(int argc UNUSED, char **argv)
{
    return delegate("sandglass-guard", argv);
}

static const struct verb verbs[] = {
    {"run", "run code, a file or a command in a sandbox", cmd_run},
    {"acp", "run an agent of the Agent Client Protocol in a sandbox", cmd_acp},
    {"serve", "serve sandboxes to E2B programs", cmd_serve},
    {"drain", "end a server when the requests under way are done", cmd_drain},
    {"key", "make, list and revoke the keys of a server", cmd_front},
    {"tenant", "list the tenants of a server and set their limits", cmd_front},
    {"world", "make templates of root file systems", cmd_front},
    {"backup", "back up a server to a directory, while it runs", cmd_front},
    {"restore", "restore a backup of a server", cmd_front},
    {"audit", "show the record of what sandboxes sent and were refused", cmd_guard},
    {"ps", "list the sandboxes of a server", cmd_client},
    {"create", "make a sandbox", cmd_client},
    {"exec", "run a command in a sandbox", cmd_client},
    {"repl", "a prompt that runs code in a sandbox", cmd_client},
    {"cp", "copy files to and from a sandbox", cmd_client},
    {"logs", "show the log of a sandbox or of the server", cmd_client},
    {"kill", "end sandboxes", cmd_client},
    {"pause", "pause sandboxes", cmd_client},
    {"resume", "resume paused sandboxes", cmd_client},
    {"fork", "copy a sandbox with its variables and files", cmd_client},
    {"link", "print an address for a port that is good for a limited time", cmd_client},
    {"diff", "list the files that a sandbox or a snapshot has changed", cmd_client},
    {"top", "show what sandboxes use now", cmd_client},
    {"ctx", "show and change the contexts of conversations", cmd_client},
    {"usage", "show what sandboxes have used, and what it costs", cmd_client},
    {"events", "show what happened to sandboxes, contexts and agents", cmd_client},
    {"mcp", "offer a server's tools to an MCP client", cmd_client},
    {"agents", "start, list and end the agents of a server", cmd_client},
    {"secret", "keep secrets that sandboxes use and never see", cmd_client},
    {"volume", "make, export and import volumes", cmd_client},
    {"template", "build, list and tag what sandboxes start with", cmd_client},
    {"doctor", "show what this kernel and host offer and what is missing", cmd_doctor},
    {"version", "show the version", cmd_version},
    {"help", "show help, or the help of a verb", cmd_help},
};

static void print_help(void)
{
    printf("Usage: sandglass VERB [OPTION]... [ARGUMENT]...\n\n"
           "Runs untrusted code in a hardened sandbox of its own.\n\n");
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        printf("  %-10s%s\n", verbs[i].name, verbs[i].summary);
    printf("\nExample: sandglass run 'print(1+1)'\n"
           "Each verb has --help and a manual page: man sandglass-run.\n");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[ARRAY_SIZE(verbs)];

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
        names[i] = verbs[i].name;
    const char *near = suggest_nearest(name, names, ARRAY_SIZE(names));
    if (near)
        ui_error("unknown verb '%.64s'; did you mean '%s'? (see 'sandglass --help')", name, near);
    else
        ui_error("unknown verb '%.64s' (see 'sandglass --help')", name);
    return CLI_EXIT_USAGE;
}

int cmd_help(int argc, char **argv)
{
    char help[] = "--help", *args[] = {argv[0], help, NULL};

    if (argc > 2) {
        ui_error("help takes one verb at most (see 'sandglass --help')");
        return CLI_EXIT_USAGE;
    }
    if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0) {
        print_help();
        return 0;
    }
    const struct verb *v = find_verb(argv[1]);
    if (!v)
        return unknown_verb(argv[1]);
    args[0] = argv[1];
    return v->fn(2, args);
}

/* Opens /dev/null for each standard descriptor that our caller left closed. Otherwise a file that
 * we open as root could get its number, and our messages would be written into that file. */
static void occupy_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        ui_error("no verb given: try 'sandglass run CODE' or 'sandglass --help'");
        return CLI_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return cmd_help(1, argv + 1);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return cmd_version(1, argv + 1);
    const struct verb *v = find_verb(argv[1]);
    return v ? v->fn(argc - 1, argv + 1) : unknown_verb(argv[1]);
}

int main(int argc, char **argv)
{
    occupy_standard_fds();
    int status = dispatch(argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        ui_error("cannot write to standard output: %s", strerror(errno));
        return status ? status : 1;
    }
    return status;
}
