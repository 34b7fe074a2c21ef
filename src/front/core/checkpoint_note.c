/* A checkpoint as the note that the warden keeps for the next front. The note is kept in memory
 * only, as a sandbox's is: directories and labels are the client's own. It leaves out what the next
 * front cannot have: recorded cells live and die with the front that recorded them. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/json/fields.h"
#include "lib/json/values.h"
#include "lib/base/fd.h"
#include "wire/agent.h"
#include "front/core/checkpoint_impl.h"

static const char *const kinds[] = {
    [CHECKPOINT_FORK] = "fork", [CHECKPOINT_LABEL] = "label", [CHECKPOINT_SNAPSHOT] = "snapshot"};

static int too_large(struct sg_error *e)
{
    return err_set(e, SG_ERR_INVALID, -E2BIG,
                   "the description of the checkpoint is larger than %u bytes", ORDER_NOTE_MAX);
}

int checkpoint_note_save(const struct checkpoint *c, struct sg_error *e)
{
    AUTO(close_p) int fd = memfd_create("sandglass-checkpoint", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    json_t *note =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:O}", "sandbox", c->sandbox_id, "kind",
                  kinds[c->kind], "label", c->label, "parent", c->parent, "serial",
                  (json_int_t)c->serial, "atMs", (json_int_t)c->at_ms, "contexts", c->contexts);
    AUTO(free_p) char *text = note ? json_dumps(note, JSON_COMPACT) : NULL;
    size_t len = text ? strlen(text) : 0;

    json_decref(note);
    if (fd < 0 || !text)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "describe the checkpoint: out of memory");
    if (len > ORDER_NOTE_MAX)
        return too_large(e);
    if (fd_write_all(fd, text, len) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        return err_set(e, SG_ERR_LIMIT, -ENOMEM, "describe the checkpoint: out of memory");
    return steal_fd(&fd);
}

/* ---- reading a note -------------------------------------------------------------------------- */

static bool has_text(const json_t *entry, const char *key, size_t max)
{
    const json_t *v = json_object_get(entry, key);

    return json_is_string(v) && json_string_length(v) <= max;
}

static bool contexts_valid(const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) > KERNELS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);

        if (!has_text(entry, "id", KERNEL_ID_LEN) || !has_text(entry, "language", OPS_TAG_MAX) ||
            !has_text(entry, "cwd", OPS_PATH_MAX) ||
            !json_is_integer(json_object_get(entry, "cells")) ||
            !json_is_integer(json_object_get(entry, "pid")))
            return false;
    }
    return true;
}

static int take(const json_t *note, struct checkpoint *c)
{
    struct fields in = {.object = note, .prefix = ""};
    json_t *contexts = json_object_get(note, "contexts");
    json_int_t serial = jr_int(note, "serial");
    size_t kind = field_word(&in, "kind", kinds, ARRAY_SIZE(kinds), ARRAY_SIZE(kinds), "a kind");

    field_copy(&in, "sandbox", c->sandbox_id, sizeof(c->sandbox_id));
    field_copy(&in, "label", c->label, sizeof(c->label));
    field_copy(&in, "parent", c->parent, sizeof(c->parent));
    if (in.r < 0 || kind == ARRAY_SIZE(kinds) || !id_valid(c->sandbox_id) ||
        !contexts_valid(contexts))
        return -EINVAL;
    c->kind = (enum checkpoint_kind)kind;
    c->serial = serial > 0 ? (uint64_t)serial : 0;
    c->at_ms = jr_int(note, "atMs");
    c->contexts = json_incref(contexts);
    return 0;
}

int checkpoint_note_load(int memfd, struct checkpoint *c, struct sg_error *e)
{
    AUTO(free_p) char *text = NULL;
    size_t len = 0;
    int r;

    /* The descriptor's offset is shared with the one that the warden keeps. */
    if (lseek(memfd, 0, SEEK_SET) < 0)
        return err_errno(e, "read a checkpoint's note");
    r = fd_read_all(memfd, ORDER_NOTE_MAX, &text, &len);
    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "read a checkpoint's note: %s", strerror(-r));
    json_t *note = json_loadb(text, len, 0, NULL);
    r = take(note, c);
    json_decref(note);
    return r == 0 ? 0 : err_set(e, SG_ERR_INTERNAL, r, "a checkpoint's note is malformed");
}
