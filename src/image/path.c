#include "image/path.h"

#include <string.h>

const char *path_show(const char *name, char buf[PATH_SHOWN])
{
    size_t n = 0;

    for (; name[n] && n < PATH_SHOWN - 4; n++)
        buf[n] = name[n] < 0x20 || name[n] >= 0x7f ? '?' : name[n];
    snprintf(buf + n, PATH_SHOWN - n, "%s", name[n] ? "..." : "");
    return buf;
}

static bool is_dots(const char *part, size_t len, size_t dots)
{
    return len == dots && memcmp(part, "..", dots) == 0;
}

int path_clean(const char *name, const struct image_limits *limits, char *ret, struct sg_error *e)
{
    size_t n = 0, depth = 0, len;

    if (name[0] == '\0')
        return err_invalid(e, "an entry of the layer has no name");
    if (strlen(name) > limits->path)
        return err_invalid(e, "the name '%s' has more than %llu bytes", PATH_SHOW(name),
                           (unsigned long long)limits->path);
    for (const char *part = name; *part; part += len + (part[len] == '/')) {
        len = strcspn(part, "/");
        if (len == 0 || is_dots(part, len, 1))
            continue;
        if (is_dots(part, len, 2))
            return err_invalid(e, "the name '%s' has '..' in it, which could lead anywhere",
                               PATH_SHOW(name));
        if (len > IMAGE_NAME_MAX)
            return err_invalid(e, "a part of the name '%s' has more than %u bytes", PATH_SHOW(name),
                               IMAGE_NAME_MAX);
        if (++depth > limits->depth)
            return err_invalid(e, "'%s' is below more than %llu directories", PATH_SHOW(name),
                               (unsigned long long)limits->depth);
        if (n > 0)
            ret[n++] = '/';
        memcpy(ret + n, part, len);
        n += len;
    }
    ret[n] = '\0';
    return 0;
}

bool path_is_clean(const char *path, size_t len)
{
    size_t depth = 0, at = 0;

    if (len > IMAGE_PATH_MAX || memchr(path, '\0', len))
        return false;
    while (at < len) {
        const char *end = memchr(path + at, '/', len - at);
        size_t part = end ? (size_t)(end - path) - at : len - at;

        if (part == 0 || part > IMAGE_NAME_MAX || is_dots(path + at, part, 1) ||
            is_dots(path + at, part, 2) || ++depth > IMAGE_DEPTH_MAX)
            return false;
        at += part;
        if (end && ++at == len)
            return false; /* a slash at the end */
    }
    return true;
}
