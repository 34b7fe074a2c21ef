#include "front/backup/manifest.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/json/values.h"
#include "lib/base/fd.h"

#define MANIFEST_MAX (64u * 1024 * 1024)
#define PARTS_MAX    1000000u

void manifest_done(struct manifest *m)
{
    free(m->parts);
    *m = (struct manifest){0};
}

void manifest_add(struct manifest *m, const char *path, const struct tree_sum *sum)
{
    m->parts = xgrow(m->parts, m->n, &m->cap, sizeof(m->parts[0]));
    struct part *p = &m->parts[m->n++];
    snprintf(p->path, sizeof(p->path), "%s", path);
    p->sum = *sum;
    m->report.files += sum->files;
    m->report.bytes += sum->bytes;
}

int manifest_write(const struct manifest *m, int dir, struct sg_error *e)
{
    AUTO(close_p)
    int fd = openat(dir, BACKUP_FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    json_t *parts = json_array();
    int r = fd < 0 ? -errno : 0;

    for (const struct part *p = m->parts; p < m->parts + m->n; p++)
        json_array_append_new(parts, json_pack("{s:s, s:I, s:I, s:s}", "path", p->path, "files",
                                               (json_int_t)p->sum.files, "bytes",
                                               (json_int_t)p->sum.bytes, "sha256", p->sum.sha256));
    json_t *all =
        json_pack("{s:i, s:s, s:s, s:i}", "format", BACKUP_FORMAT, "version", m->report.version,
                  "created", m->report.created, "schema", m->report.facts.schema);
#define SAVE(name, table) \
    json_object_set_new(all, #name, json_integer((json_int_t)m->report.facts.name));
    STORE_COUNTS(SAVE)
#undef SAVE
    json_object_set_new(all, "volumesLeftOut", json_integer((json_int_t)m->report.volumes_left));
    json_object_set_new(all, "parts", parts);
    char *text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
    if (r == 0)
        r = text ? fd_write_all(fd, text, strlen(text)) : -ENOMEM;
    free(text);
    json_decref(all);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return r < 0 ? err_code(e, r, "write '" BACKUP_FILE_NAME "'") : 0;
}

/* TENANT/ID */
static bool is_volume(const char *name)
{
    char tenant[ID_LEN + 1];

    snprintf(tenant, sizeof(tenant), "%.*s", ID_LEN, name);
    return strlen(name) == 2 * ID_LEN + 1 && name[ID_LEN] == '/' && id_valid(tenant) &&
           id_valid(name + ID_LEN + 1);
}

/* Whether the path of a part is one of the known ones, so that it cannot lead elsewhere. */
static bool good_path(const char *path)
{
    if (strncmp(path, PART_VOLUMES "/", strlen(PART_VOLUMES) + 1) == 0)
        return is_volume(path + strlen(PART_VOLUMES) + 1);
    if (strncmp(path, "layers/", 7) == 0)
        return id_valid_on(path + 7);
    return strcmp(path, "front") == 0 || strcmp(path, "guard") == 0 ||
           (strncmp(path, "worlds/", 7) == 0 && id_valid(path + 7));
}

static int read_part(const json_t *p, struct manifest *m)
{
    const char *path = jr_text(p, "path"), *sha256 = jr_text(p, "sha256");
    struct tree_sum sum = {.files = (uint64_t)jr_int(p, "files"),
                           .bytes = (uint64_t)jr_int(p, "bytes")};

    if (!good_path(path) || strlen(sha256) != TREE_SUM_LEN)
        return -EINVAL;
    memcpy(sum.sha256, sha256, sizeof(sum.sha256));
    manifest_add(m, path, &sum);
    return 0;
}

static int read_json(const json_t *all, const char *name, struct manifest *m, struct sg_error *e)
{
    const json_t *parts = json_object_get(all, "parts");
    size_t i;
    json_t *p;
    int r = json_is_array(parts) && json_array_size(parts) <= PARTS_MAX ? 0 : -EINVAL;

    snprintf(m->report.version, sizeof(m->report.version), "%s", jr_text_or(all, "version", "?"));
    snprintf(m->report.created, sizeof(m->report.created), "%s", jr_text_or(all, "created", "?"));
#define LOAD(name, table) .name = (uint64_t)jr_int(all, #name),
    m->report.facts =
        (struct store_facts){.schema = (int)jr_int(all, "schema"), STORE_COUNTS(LOAD)};
#undef LOAD
    int64_t format = jr_int(all, "format");
    m->old_sums = format == 1;
    m->report.volumes_left = (uint64_t)jr_int(all, "volumesLeftOut");
    if (format < 1 || format > BACKUP_FORMAT || m->report.facts.schema > store_schema())
        return err_set(e, SG_ERR_UNSUPPORTED, -EPROTO,
                       "the backup '%s' was made by sandglass %s, which is newer than this one: "
                       "install that version first",
                       name, m->report.version);
    json_array_foreach((json_t *)(uintptr_t)parts, i, p)
    {
        if (r == 0)
            r = read_part(p, m);
    }
    return r < 0 ? err_set(e, SG_ERR_INVALID, r, "'%s/" BACKUP_FILE_NAME "' is malformed", name)
                 : 0;
}

int manifest_read(int dir, const char *name, struct manifest *ret, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    struct manifest m = {0};
    size_t len = 0;
    int r = file_read(dir, BACKUP_FILE_NAME, MANIFEST_MAX, &text, &len);

    if (r < 0)
        return err_set(e, SG_ERR_INVALID, r,
                       "'%s' is not a backup: it has no " BACKUP_FILE_NAME " (%s)", name,
                       strerror(-r));
    json_t *all = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    r = all ? read_json(all, name, &m, e)
            : err_invalid(e, "'%s/" BACKUP_FILE_NAME "' is not JSON", name);
    json_decref(all);
    if (r < 0) {
        manifest_done(&m);
        return r;
    }
    *ret = m;
    return 0;
}
