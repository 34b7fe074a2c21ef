#include "front/e2b/volume_mounts.h"

#include <string.h>

#include "front/e2b/volumes.h"
#include "lib/json/values.h"
#include "wire/volume.h"
#include "wire/warden.h"

/* Neither these nor anything in them: they belong to the system, or are mounts of their own. */
static const char *const closed[] = {"/proc", "/dev",  "/sys",   "/usr",   "/bin",
                                     "/sbin", "/lib",  "/lib32", "/lib64", "/libx32",
                                     "/etc",  "/boot", "/run"};
/* Not these, but what is in them. */
static const char *const kept[] = {"/", "/home", "/home/user", "/root", "/tmp", "/var", "/var/tmp"};

/* Whether `path` is `top`, or in it. */
static bool is_within(const char *path, const char *top)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool hides(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
        if (is_within(path, closed[i]))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (strcmp(path, kept[i]) == 0)
            return true;
    return false;
}

static void check_path(struct fields *in, const char *given, char ret[VOLUME_PATH_MAX])
{
    int r = volume_path(given, strlen(given), ret);

    if (given[0] != '/')
        fields_invalid(in, "Invalid mount path \"%.200s\": it must be absolute", given);
    else if (r < 0 || strlen(ret) >= ORDER_TARGET_MAX)
        fields_invalid(in, "Invalid mount path \"%.64s...\": it has at most %d characters", given,
                       ORDER_TARGET_MAX - 1);
    else if (strstr(given, ".."))
        fields_invalid(in, "Invalid mount path \"%.200s\": name the directory without \"..\"",
                       given);
    else if (hides(ret))
        fields_invalid(in,
                       "Invalid mount path \"%.200s\": it would hide what the sandbox needs; use "
                       "one such as /mnt/data or /home/user/data",
                       given);
}

/* `as_given`: the path, and so `given` has those of `mounts`. */
static void check_others(struct fields *in, const json_t *given, const json_t *mounts,
                         const char *path, const char *as_given)
{
    json_t *mount;
    size_t i;

    json_array_foreach(mounts, i, mount)
    {
        const char *other = jr_text(mount, "path");
        if (is_within(path, other) || is_within(other, path))
            fields_invalid(in, "Invalid mount paths: \"%.100s\" and \"%.100s\" lie in each other",
                           jr_text_or(json_array_get(given, i), "path", ""), as_given);
    }
}

json_t *volume_mounts_parse(struct fields *in)
{
    const json_t *given = field_array(in, "volumeMounts", ORDER_VOLUMES_MAX);
    json_t *mounts = json_array(), *value;
    size_t i;

    json_array_foreach(given, i, value)
    {
        struct fields one = fields_within(in, value);
        const char *name = field_text(&one, "name", STORE_NAME_MAX, "");
        const char *path_given = field_text(&one, "path", VOLUME_PATH_MAX, "");
        bool readonly = field_flag(&one, "readOnly", false);
        char path[VOLUME_PATH_MAX] = "";

        if (!json_is_object(value))
            field_must(in, "volumeMounts", "an array of objects");
        if (!volume_name_valid(name))
            fields_invalid(in, "Invalid volumeMounts: " VOLUME_NAME_RULE);
        check_path(in, path_given, path);
        check_others(in, given, mounts, path, path_given);
        json_array_append_new(
            mounts, json_pack("{s:s, s:s, s:b}", "name", name, "path", path, "readOnly", readonly));
    }
    if (fields_ok(in) && json_array_size(mounts) > 0)
        return mounts;
    json_decref(mounts);
    return NULL;
}
