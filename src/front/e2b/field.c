#include "front/e2b/field.h"

#include <string.h>

#define HOUR_MS (3600ull * 1000)

const json_t *field_get(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);

    return json_is_null(v) ? NULL : v;
}

int fields_known(const json_t *object, const char *const *names, size_t n, struct sg_error *e)
{
    /* The iterator does not change the object, but its type is not const. */
    json_t *walk = (json_t *)(uintptr_t)object;

    for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
        const char *name = json_object_iter_key(at);
        size_t i = 0;

        while (i < n && strcmp(names[i], name) != 0)
            i++;
        if (i == n)
            return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "unknown field '%.64s'", name);
    }
    return 0;
}

static int wrong(const char *name, const char *what, struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' must be %s", name, what);
}

int field_tristate(const json_t *object, const char *name, int *ret, struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    if (!v)
        return 0;
    if (!json_is_boolean(v))
        return wrong(name, "true or false", e);
    *ret = json_is_true(v);
    return 0;
}

int field_bool(const json_t *object, const char *name, bool *ret, struct sg_error *e)
{
    int value = *ret;
    int r = field_tristate(object, name, &value, e);

    *ret = value != 0;
    return r;
}

int field_int(const json_t *object, const char *name, bool *ret_given, int32_t *ret,
              struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    *ret_given = v != NULL;
    if (!v)
        return 0;
    if (!json_is_integer(v))
        return wrong(name, "a whole number", e);
    if (json_integer_value(v) < INT32_MIN || json_integer_value(v) > INT32_MAX)
        return wrong(name, "a number of at most 32 bits", e);
    *ret = (int32_t)json_integer_value(v);
    return 0;
}

int field_string(const json_t *object, const char *name, size_t max, const char **ret,
                 struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    if (!v)
        return 0;
    if (!json_is_string(v))
        return wrong(name, "a string", e);
    if (json_string_length(v) > max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' has more than %zu bytes", name,
                       max);
    *ret = json_string_value(v);
    return 0;
}

int field_object(const json_t *object, const char *name, const json_t **ret, struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    if (!v)
        return 0;
    if (!json_is_object(v))
        return wrong(name, "an object", e);
    *ret = v;
    return 0;
}

int field_array(const json_t *object, const char *name, size_t max, const json_t **ret,
                struct sg_error *e)
{
    const json_t *v = field_get(object, name);

    if (!v)
        return 0;
    if (!json_is_array(v))
        return wrong(name, "an array", e);
    if (json_array_size(v) > max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, FIELD_ERROR "'%s' has more than %zu entries",
                       name, max);
    *ret = v;
    return 0;
}

int field_strings(const json_t *object, const char *name, size_t max, const json_t **ret,
                  struct sg_error *e)
{
    const json_t *v = NULL, *value;
    size_t bytes = 0;
    int r = field_object(object, name, &v, e);

    if (r < 0 || !v)
        return r;
    /* The iterator does not change the object, but its type is not const. */
    json_t *walk = (json_t *)(uintptr_t)v;
    for (void *at = json_object_iter(walk); at; at = json_object_iter_next(walk, at)) {
        value = json_object_iter_value(at);
        if (!json_is_string(value))
            return wrong(name, "an object of strings", e);
        bytes += strlen(json_object_iter_key(at)) + json_string_length(value);
    }
    if (bytes > max)
        return err_set(e, SG_ERR_INVALID, -E2BIG, FIELD_ERROR "'%s' has more than %zu bytes", name,
                       max);
    *ret = v;
    return 0;
}

int field_timeout(const json_t *object, int32_t min_s, uint32_t default_s, uint64_t max_ms,
                  uint64_t *ret_ms, struct sg_error *e)
{
    uint64_t fallback = default_s * 1000ull;
    int32_t seconds = 0;
    bool given;
    int r = field_int(object, "timeout", &given, &seconds, e);

    if (r < 0)
        return r;
    if (!given) {
        *ret_ms = fallback < max_ms ? fallback : max_ms;
        return 0;
    }
    if (seconds < min_s)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "Timeout must be greater than %d", min_s - 1);
    if ((uint64_t)seconds * 1000 > max_ms) {
        if (max_ms % HOUR_MS == 0)
            return err_set(e, SG_ERR_INVALID, -EINVAL, "Timeout cannot be greater than %llu hours",
                           (unsigned long long)(max_ms / HOUR_MS));
        return err_set(e, SG_ERR_INVALID, -EINVAL, "Timeout cannot be greater than %llu seconds",
                       (unsigned long long)(max_ms / 1000));
    }
    *ret_ms = (uint64_t)seconds * 1000;
    return 0;
}
