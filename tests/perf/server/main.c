#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static const struct {
    const char *name;
    int (*fn)(const struct server *s, int argc, char **argv);
} verbs[] = {
    {"create", verb_create},
    {"interactive", verb_interactive},
    {"burst", verb_burst},
    {"churn", verb_churn},
    {"pause", verb_pause},
    {"streams", verb_streams},
    {"transfer", verb_transfer},
    {"health", verb_health},
    {"twins", verb_twins},
    {"first-cells", verb_first_cells},
    {"cells", verb_cells},
    {"neighbour", verb_neighbour},
    {"crowd", verb_crowd},
    {"output", verb_output},
    {"forks", verb_forks},
    {"fork-fan", verb_fork_fan},
    {"checkpoints", verb_checkpoints},
    {"rewinds", verb_rewinds},
    {"fork-chain", verb_fork_chain},
    {"fork-idle", verb_fork_idle},
    {"paths-new", verb_paths_new},
    {"paths-found", verb_paths_found},
    {"paths-run", verb_paths_run},
    {"paths-race", verb_paths_race},
    {"paths-reap", verb_paths_reap},
};

double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

long count_of(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n <= 0)
        fail("read a number", text);
    return n;
}

void print_us(const char *name, double us)
{
    printf("{\"case\":\"%s\",\"us\":%.1f}\n", name, us);
}

void checkpoint(const char *name)
{
    char c;

    printf("{\"checkpoint\":\"%s\"}\n", name);
    fflush(stdout);
    if (read(STDIN_FILENO, &c, 1) != 1)
        exit(1);
}

_Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "load: %s: %s\n", what, why);
    exit(1);
}

/* load PORT KEY VERB ARGUMENT... */
int main(int argc, char **argv)
{
    if (argc < 4)
        fail("usage", "load PORT KEY VERB ARGUMENT...");
    struct server s = {.port = (int)count_of(argv[1]), .key = argv[2]};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, argv[3]) == 0)
            return verbs[i].fn(&s, argc - 4, argv + 4);
    fail("unknown verb", argv[3]);
}
