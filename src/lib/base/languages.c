#include "lib/base/languages.h"

#include <stdio.h>
#include <string.h>

/* TypeScript is stripped of its types and run as an ES module; require() works as well. */
#define RUN_TYPESCRIPT                                                                             \
    "esbuild --loader=ts --format=esm --target=node18 --sourcemap=inline --log-level=error "       \
    "--banner='import{createRequire as $r}from\"node:module\";const require=$r(import.meta.url);'" \
    " --sourcefile=\"$0\" <\"$0\" >\"$0.mjs\" && exec node --enable-source-maps \"$0.mjs\""

/* Where the template has the kernels: see kernels/README.md. Python gets the path of the file, not
 * of its folder: to find the file in the folder takes it longer than to compile it. */
#define KERNELS "/usr/local/lib/sandglass/kernels"
#define PYTHON  KERNELS "/python/__main__.py"
#define NODE    KERNELS "/javascript/main.mjs"

#define ECMASCRIPT                                                                  \
    {                                                                               \
        "'\"", "", .template = true, .regex = true, .open_ends = "=+-*/%,.&|?:<>^~" \
    }

const struct language languages[] = {
    {.name = "python",
     .short_name = "py",
     .suffixes = "py",
     .main = "main.py",
     .program = {"python3", "@"},
     .cell = {"python3", PYTHON, "--once", "@"},
     .kernel = PROGRAM_PYTHON,
     .needs = {"/usr/bin/python3"},
     .syntax = {"'\"", "", .triple = true, .hash = true, .blocks = true, .open_ends = ""}},
    {.name = "javascript",
     .short_name = "js",
     .suffixes = "js mjs cjs",
     .main = "main.js",
     .program = {"node", "@"},
     .cell = {"node", NODE, "javascript", "--once", "@"},
     .kernel = PROGRAM_NODE,
     .needs = {"/usr/bin/node"},
     .syntax = ECMASCRIPT},
    {.name = "typescript",
     .short_name = "ts",
     .suffixes = "ts mts cts",
     .main = "main.ts",
     .program = {"sh", "-c", RUN_TYPESCRIPT, "@"},
     .cell = {"node", NODE, "typescript", "--once", "@"},
     .kernel = PROGRAM_NODE,
     .needs = {"/usr/bin/node"},
     .syntax = ECMASCRIPT},
    {.name = "bash",
     .short_name = "sh",
     .suffixes = "sh bash",
     .main = "main.bash",
     .program = {"bash", "@"},
     .kernel = PROGRAM_BRIDGE,
     .needs = {"/usr/bin/bash", "/bin/bash"}},
    {.name = "sh", .suffixes = "sh", .main = "main.sh", .program = {"sh", "@"}},
    {.name = "java",
     .suffixes = "",
     .kernel = PROGRAM_BRIDGE,
     .needs = {"/usr/bin/jshell", "/usr/bin/java"},
     .syntax = {"'\"", "", .triple = true, .open_ends = "=+-*/%,.&|?:^~"}},
    {.name = "r",
     .suffixes = "",
     .kernel = PROGRAM_BRIDGE,
     .needs = {"/usr/bin/R", "/usr/bin/Rscript"},
     .syntax = {"'\"`", "'\"`", .hash = true, .open_ends = "=+-*/,&|~^$<>%"}},
};
const size_t n_languages = ARRAY_SIZE(languages), n_languages_with_program = 5;

const struct language *language_find(const char *name)
{
    for (size_t i = 0; i < n_languages; i++)
        if (strcmp(name, languages[i].name) == 0)
            return &languages[i];
    return NULL;
}

const char *language_full_name(const char *name)
{
    if (name[0] == '\0')
        return languages[0].name;
    for (size_t i = 0; i < n_languages; i++)
        if (languages[i].short_name && strcmp(name, languages[i].short_name) == 0)
            return languages[i].name;
    return name;
}

bool language_has_suffix(const struct language *l, const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot ? strlen(dot + 1) : 0;

    for (const char *p = l->suffixes; n > 0 && *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, dot + 1, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

const char *language_names(size_t n, char buf[LANGUAGE_NAMES_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < n && len < LANGUAGE_NAMES_MAX; i++)
        len += (size_t)snprintf(buf + len, LANGUAGE_NAMES_MAX - len, "%s%s",
                                i == 0      ? ""
                                : i + 1 < n ? ", "
                                            : " or ",
                                languages[i].name);
    return buf;
}
