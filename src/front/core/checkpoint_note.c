/* A checkpoint as the note that the warden keeps for the next front. The note is kept in memory
 * only, as a sandbox's is: directories and labels are the client's own. It leaves out what the next
 * front cannot have: recorded cells live and die with the front that recorded them. */
#include <string.h>

#include "lib/json/fields.h"
#include "lib/json/memfd.h"
#include "lib/json/values.h"
#include "wire/agent.h"
#include "front/core/checkpoint_impl.h"

static const char *const kinds[] = {
    [CHECKPOINT_FORK] = "fork", [CHECKPOINT_LABEL] = "label", [CHECKPOINT_SNAPSHOT] = "snapshot"};

int checkpoint_note_save(const struct checkpoint *c, struct sg_error *e)
{
    json_t *note =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:O}", "sandbox", c->sandbox_id, "kind",
                  kinds[c->kind], "label", c->label, "parent", c->parent, "serial",
                  (json_int_t)c->serial, "atMs", (json_int_t)c->at_ms, "contexts", c->contexts);
    int r = memfd_of_json("sandglass-checkpoint", note, ORDER_NOTE_MAX);

    if (r == -E2BIG)
        return err_set(e, SG_ERR_INVALID, r,
                       "the description of the checkpoint is larger than %u bytes", ORDER_NOTE_MAX);
    return r < 0 ? err_set(e, SG_ERR_LIMIT, r, "describe the checkpoint: out of memory") : r;
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
    json_t *note;
    int r = memfd_read_json(memfd, ORDER_NOTE_MAX, &note);

    if (r < 0)
        return err_set(e, SG_ERR_INTERNAL, r, "read a checkpoint's note: %s", strerror(-r));
    r = take(note, c);
    json_decref(note);
    return r == 0 ? 0 : err_set(e, SG_ERR_INTERNAL, r, "a checkpoint's note is malformed");
}
