/* Languages of the library's interface: the first rows of the table (lib/base/languages.h). */
#include <string.h>
#include <strings.h>

#include "engine/sandbox.h"

const struct language *language_get(enum sg_language l)
{
    return (unsigned)l < SG_LANGUAGE_MAX_ ? &languages[l] : NULL;
}

const char *sg_language_name(enum sg_language language)
{
    const struct language *l = language_get(language);

    return l ? l->name : NULL;
}

int sg_language_parse(const char *name, enum sg_language *ret, struct sg_error *e)
{
    char names[LANGUAGE_NAMES_MAX];

    for (unsigned i = 0; i < SG_LANGUAGE_MAX_; i++)
        if (strcasecmp(name, languages[i].name) == 0 ||
            strcasecmp(name, languages[i].short_name) == 0) {
            *ret = (enum sg_language)i;
            return 0;
        }
    return err_invalid(e, "unknown language '%.64s': use %s", name,
                       language_names(SG_LANGUAGE_MAX_, names));
}

const char *language_suffix(const struct language *l, const char *name, size_t *ret_len)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    const char *suffix = dot && language_has_suffix(l, name) ? dot + 1 : l->suffixes;

    *ret_len = strcspn(suffix, " ");
    return suffix;
}

int sg_language_of_path(const char *path, enum sg_language *ret, struct sg_error *e)
{
    for (unsigned i = 0; i < SG_LANGUAGE_MAX_; i++)
        if (language_has_suffix(&languages[i], path)) {
            *ret = (enum sg_language)i;
            return 0;
        }
    return err_invalid(e, "the suffix of '%.128s' names no language: add --language", path);
}
