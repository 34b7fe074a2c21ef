#include "front/envd/entry.h"

#include <stdio.h>

#include "wire/agent.h"
#include "front/envd/messages.h"

#define PERMISSIONS_MAX 16
#define OWNER_MAX       256
#define NANOS           1000000000

/* Writes a mode as Go does: letters for the file's type and its special bits, then the nine
 * permission bits. */
static void write_permissions(uint32_t type, uint32_t mode, char ret[PERMISSIONS_MAX])
{
    static const char rwx[] = "rwxrwxrwx";
    size_t n = 0;

    if (type == ENTRY_DIR)
        ret[n++] = 'd';
    if (type == ENTRY_SYMLINK)
        ret[n++] = 'L';
    if (mode & 04000)
        ret[n++] = 'u';
    if (mode & 02000)
        ret[n++] = 'g';
    if (mode & 01000)
        ret[n++] = 't';
    if (type == ENTRY_OTHER)
        ret[n++] = '?';
    if (n == 0)
        ret[n++] = '-';
    for (unsigned i = 0; i < 9; i++)
        ret[n++] = mode & (0400u >> i) ? rwx[i] : '-';
    ret[n] = '\0';
}

static json_t *timestamp(int64_t ns)
{
    int64_t seconds = ns / NANOS, nanos = ns % NANOS;
    json_t *time = json_object();

    if (nanos < 0) {
        nanos += NANOS;
        seconds--;
    }
    if (seconds != 0)
        json_object_set_new(time, "seconds", json_integer(seconds));
    if (nanos != 0)
        json_object_set_new(time, "nanos", json_integer(nanos));
    return time;
}

static void set_number(json_t *entry, const char *name, int64_t v)
{
    if (v != 0)
        json_object_set_new(entry, name, json_integer(v));
}

static int file_type(uint32_t type)
{
    return type == ENTRY_FILE ? FILE_TYPE_FILE : type == ENTRY_DIR ? FILE_TYPE_DIRECTORY : 0;
}

static void read_metadata(struct wire_reader *r, json_t *entry)
{
    uint32_t n = wire_get_u32(r);
    json_t *map = json_object();

    for (uint32_t i = 0; i < n && !r->bad; i++) {
        json_t *key = rpc_text(wire_get_str(r, FILE_META_KEY_MAX));
        json_object_set_new_nocheck(map, json_string_value(key),
                                    rpc_text(wire_get_str(r, FILE_META_MAX)));
        json_decref(key);
    }
    if (json_object_size(map) > 0)
        json_object_set_new(entry, "metadata", map);
    else
        json_decref(map);
}

/* Owners without a name in the sandbox's table of users come as numbers: the agent sees to that. */
static void set_text(json_t *entry, const char *name, const char *text)
{
    if (*text)
        json_object_set_new(entry, name, rpc_text(text));
}

json_t *entry_read(struct wire_reader *r)
{
    json_t *entry = json_object();
    char permissions[PERMISSIONS_MAX];

    set_text(entry, "name", wire_get_str(r, OPS_PATH_MAX));
    const char *path = wire_get_str(r, OPS_PATH_MAX);
    set_text(entry, "path", path);
    uint32_t type = wire_get_u32(r), mode = wire_get_u32(r);
    wire_get_u32(r);
    wire_get_u32(r); /* uid, gid */
    set_text(entry, "owner", wire_get_str(r, OWNER_MAX));
    set_text(entry, "group", wire_get_str(r, OWNER_MAX));
    set_number(entry, "size", (int64_t)wire_get_u64(r));
    int64_t mtime_ns = (int64_t)wire_get_u64(r);
    wire_get_str(r, OPS_PATH_MAX); /* text of a link: its target is told instead */
    const char *target = wire_get_str(r, OPS_PATH_MAX);
    uint32_t target_type = wire_get_u32(r), target_mode = wire_get_u32(r);
    wire_get_u64(r); /* size of the link's target: clients get the size of the link itself */
    read_metadata(r, entry);

    write_permissions(type, mode, permissions);
    set_text(entry, "permissions", permissions);
    if (mtime_ns != 0)
        json_object_set_new(entry, "modifiedTime", timestamp(mtime_ns));
    if (type == ENTRY_SYMLINK) {
        json_object_set_new(entry, "symlinkTarget", rpc_text(*target ? target : path));
        type = *target ? target_type : ENTRY_OTHER;
        mode = *target ? target_mode : 0;
    }
    set_number(entry, "type", file_type(type));
    set_number(entry, "mode", mode & 0777);
    if (wire_done(r))
        return entry;
    json_decref(entry);
    return NULL;
}

json_t *entry_of_written(json_t *entry)
{
    static const char *const told[] = {"path", "name", "type", "metadata"};
    json_t *file = json_object();

    json_object_set_new(entry, "type", json_string("file"));
    for (size_t i = 0; i < ARRAY_SIZE(told); i++)
        json_object_set(file, told[i], json_object_get(entry, told[i]));
    json_decref(entry);
    return file;
}
