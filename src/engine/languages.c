#include <string.h>
#include <strings.h>

#include "engine/sandbox.h"

/* TypeScript is stripped of its types and run as an ES module; require() works as well. */
static const char run_typescript[] =
    "esbuild --loader=ts --format=esm --target=node18 --sourcemap=inline --log-level=error "
    "--sourcefile=\"$0\" "
    "--banner='import{createRequire as $r}from\"node:module\";const require=$r(import.meta.url);' "
    "< \"$0\" > \"${0%.*}.mjs\" && exec node --enable-source-maps \"${0%.*}.mjs\"";

/* Where the template has the kernels: see kernels/README.md. Python gets the path of the file, not
 * of its folder: to find the file in the folder takes it longer than to compile it. */
#define KERNELS "/usr/local/lib/sandglass/kernels"
#define PYTHON  KERNELS "/python/__main__.py"
#define NODE    KERNELS "/javascript/main.mjs"

static const struct language languages[] = {
    [SG_PYTHON] = {"python", "py", "py", {"python3", "@"}, {"python3", PYTHON, "--once", "@"}},
    [SG_JAVASCRIPT] = {"javascript",
                       "js",
                       "js mjs cjs",
                       {"node", "@"},
                       {"node", NODE, "javascript", "--once", "@"}},
    [SG_TYPESCRIPT] = {"typescript",
                       "ts",
                       "ts mts cts",
                       {"sh", "-c", run_typescript, "@"},
                       {"node", NODE, "typescript", "--once", "@"}},
    [SG_BASH] = {"bash", "sh", "sh bash", {"bash", "@"}, {NULL}},
};
_Static_assert(ARRAY_SIZE(languages) == SG_LANGUAGE_MAX_, "an entry for every language");

const struct language *language_get(enum sg_language l)
{
    return (unsigned)l < ARRAY_SIZE(languages) ? &languages[l] : NULL;
}

const char *sg_language_name(enum sg_language language)
{
    const struct language *l = language_get(language);

    return l ? l->name : NULL;
}

int sg_language_parse(const char *name, enum sg_language *ret, struct sg_error *e)
{
    for (unsigned i = 0; i < ARRAY_SIZE(languages); i++)
        if (strcasecmp(name, languages[i].name) == 0 ||
            strcasecmp(name, languages[i].short_name) == 0) {
            *ret = (enum sg_language)i;
            return 0;
        }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "unknown language '%.64s': use python, javascript, typescript or bash", name);
}

static bool has_suffix(const char *list, const char *suffix)
{
    size_t n = strlen(suffix);

    for (const char *p = list; *p;) {
        size_t len = strcspn(p, " ");
        if (len == n && strncmp(p, suffix, n) == 0)
            return true;
        p += len + (p[len] == ' ');
    }
    return false;
}

const char *language_suffix(const struct language *l, const char *name, size_t *ret_len)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    const char *suffix = dot && has_suffix(l->suffixes, dot + 1) ? dot + 1 : l->suffixes;

    *ret_len = strcspn(suffix, " ");
    return suffix;
}

int sg_language_of_path(const char *path, enum sg_language *ret, struct sg_error *e)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(base, '.');

    for (unsigned i = 0; dot && i < ARRAY_SIZE(languages); i++)
        if (has_suffix(languages[i].suffixes, dot + 1)) {
            *ret = (enum sg_language)i;
            return 0;
        }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "the suffix of '%.128s' names no language: add --language", path);
}
