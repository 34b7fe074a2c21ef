#include "cli/client/place.h"

#include "cli/client/url.h"

#define NAME_BYTES_MAX 255

void place_parse(struct place *p, const char *arg)
{
    const char *colon = strchr(arg, ':');
    AUTO(free_p) char *id = colon ? strndup(arg, (size_t)(colon - arg)) : NULL;

    *p = (struct place){.path = arg};
    if (!id || !url_is_plain_name(id))
        return;
    p->id = steal_ptr(&id);
    /* Without a path: the home directory, where relative paths begin. */
    p->path = colon[1] ? colon + 1 : ".";
}

void place_done(struct place *p)
{
    free(p->id);
    p->id = NULL;
}

bool place_is_stream(const struct place *p)
{
    return !p->id && strcmp(p->path, "-") == 0;
}

bool place_is_name(const char *name)
{
    return *name && strlen(name) <= NAME_BYTES_MAX && !strchr(name, '/') &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

char *place_last_name(const char *path)
{
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    char *name = strndup(path + start, end - start);
    if (name && place_is_name(name) && strcmp(name, "~") != 0)
        return name;
    free(name);
    return xstrdup("");
}

char *place_join(const char *dir, const char *name)
{
    char *path = NULL;
    const char *slash = *dir && !place_ends_in_slash(dir) ? "/" : "";

    return asprintf(&path, "%s%s%s", dir, slash, name) < 0 ? xstrdup("") : path;
}

bool place_ends_in_slash(const char *path)
{
    return *path && path[strlen(path) - 1] == '/';
}
