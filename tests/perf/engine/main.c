#include <stdio.h>
#include <string.h>

#include "bench.h"

static const struct {
    const char *name, *arguments;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"engine", "ROUNDS PROGRAM_DIR", verb_engine},
    {"commands", "ROUNDS NAME COMMAND [ARG]... [:: NAME COMMAND [ARG]...]...", verb_commands},
    {"series", "COUNT PROGRAM_DIR", verb_series},
    {"overhead", "ROUNDS NAME PROGRAM_DIR OUTSIDE [ARG]... :: INSIDE [ARG]...", verb_overhead},
    {"hold", "SANDBOXES", verb_hold},
    {"cycles", "CYCLES SLOTS", verb_cycles},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 2, argv + 2);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        fprintf(stderr, "usage: bench %s %s\n", verbs[i].name, verbs[i].arguments);
    return 2;
}
