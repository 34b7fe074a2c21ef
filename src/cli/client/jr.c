#include "cli/client/jr.h"

#define COUNT_MAX 9e18 /* fits into both a double and 64 bits */

int jr_parse(const char *text, size_t len, json_t **ret, struct sg_error *e)
{
    json_error_t why;
    json_t *tree = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);

    if (!tree)
        return err_set(e, SG_ERR_INTERNAL, -EPROTO, "the server's answer is not JSON: %s",
                       why.text);
    *ret = tree;
    return 0;
}

double jr_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (json_is_string(value))
        return strtod(json_string_value(value), NULL);
    return json_number_value(value);
}

uint64_t jr_count(const json_t *object, const char *key)
{
    double value = jr_number(object, key);

    /* Not "value <= 0", so that NaN gives 0 too. */
    if (!(value > 0))
        return 0;
    return value < COUNT_MAX ? (uint64_t)value : (uint64_t)COUNT_MAX;
}

const json_t *jr_find(const json_t *array, const char *key, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (strcmp(jr_text(json_array_get(array, i), key), text) == 0)
            return json_array_get(array, i);
    return NULL;
}

int jr_flush(struct sg_error *e)
{
    return fflush(stdout) == 0 ? 0 : err_errno(e, "cannot write to standard output");
}

int jr_print(const json_t *tree, struct sg_error *e)
{
    if (json_dumpf(tree, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY | JR_DIGITS) < 0 ||
        putchar('\n') == EOF)
        return err_errno(e, "cannot write to standard output");
    return jr_flush(e);
}
