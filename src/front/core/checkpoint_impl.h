/* Declarations that the files behind checkpoint.h share. */
#pragma once

#include "front/core/checkpoint.h"

#define THINNED_MAX        512 /* names and labels that a sandbox's lineage remembers */
#define REPORT_MAX         (256u * 1024)
#define REPORT_WAY_MAX     64 /* entries of "inTheWay" */
#define REPORT_DROPPED_MAX 64 /* entries of "dropped" for one kernel */

#define REASON_GONE "its copy has ended: its memory was needed, or the broker that kept it failed"
/* Sets the error for a checkpoint whose kernels are gone, and returns -EOWNERDEAD. */
int checkpoint_say_lost(const struct checkpoint *c, struct sg_error *e);

/* The checkpoints of one sandbox, and the names and labels of those that were thinned out. */
struct lineage {
    struct map_node by_id;
    char sandbox_id[ID_LEN + 1];
    struct list all; /* oldest first */
    char *thinned[THINNED_MAX];
    size_t n_thinned; /* all so far; `thinned` is a ring */
};

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

struct checkpoint *checkpoint_new(struct front *f); /* the caller's reference */
struct checkpoint *checkpoint_ref(struct checkpoint *c);
void checkpoint_unref(struct checkpoint *c); /* NULL is allowed */
/* Returns a serial that is above all that were used, and above `after`, which a sandbox of an
 * earlier front may already have used. */
uint64_t checkpoints_next_serial(struct front *f, uint64_t after);
/* The table takes a reference of its own. */
void checkpoint_add(struct checkpoint *c);
/* Removes a checkpoint from the table without telling the warden. Harmless if it is not there. */
void checkpoint_drop(struct checkpoint *c);
struct lineage *lineage_find(struct front *f, const char *sandbox_id);
void lineage_remember_thinned(struct lineage *l, const char *label);
void lineages_each(struct front *f, void (*fn)(struct front *f, struct lineage *l));
/* The memory of the kernels of all checkpoints of a tenant. */
uint64_t checkpoints_memory(struct front *f, const char *tenant);

/* ---- checkpoint_note.c ----------------------------------------------------------------------- */

/* Returns a sealed memfd with the note. */
int checkpoint_note_save(const struct checkpoint *c, struct sg_error *e);
/* Fills c from a note. The warden tells the name and the tenant: they are not read from the
 * note. */
int checkpoint_note_load(int memfd, struct checkpoint *c, struct sg_error *e);

/* ---- checkpoint_report.c --------------------------------------------------------------------- */

/* Reads one EVENT_KERNEL into an entry of `contexts`. NULL: no honest agent sends this. */
json_t *report_read_context(const void *event, size_t len);
/* Reads the broker's report from a memfd; NULL if it cannot be read. The result is not trusted, and
 * its texts are not bounded yet. */
json_t *report_read(int memfd);
/* Marks in `contexts` which kernels the broker copied and what it dropped. Returns how many were
 * copied. */
size_t report_mark_carried(json_t *contexts, const json_t *broker);
/* Makes {"inTheWay": [...]}: from the broker's report or, if that lists nothing, from a message;
 * the second function does it for a cell that runs. */
json_t *report_in_the_way(const json_t *broker, const char *message);
json_t *report_cell_in_the_way(const char *message);
/* Makes {"kernels": [...]}. gone: why the copies are not there; NULL: they are there. */
json_t *report_kernels(const json_t *contexts, const char *gone);

/* ---- checkpoint_take.c ----------------------------------------------------------------------- */

/* Sets the error for a sandbox that does not run: -EBUSY if it is paused, -ENOENT if it has
 * ended. */
int checkpoint_no_sandbox(const struct sandbox *b, struct sg_error *e);

/* ---- checkpoint_adopt.c ---------------------------------------------------------------------- */

/* Gives a sandbox the contexts of a checkpoint. done is called exactly once. gone: why the kernels
 * did not come along (a static text); NULL if they did. */
typedef void (*adopt_done)(void *arg, int r, const struct sg_error *e, const char *gone);
void checkpoint_adopt(struct sandbox *b, struct checkpoint *c, const char *gone, adopt_done done,
                      void *arg);

/* ---- checkpoint_thin.c ----------------------------------------------------------------------- */

/* Called after a checkpoint was taken: forgets those of its sandbox that are not kept. */
void checkpoints_thin(struct front *f, struct lineage *l);
/* Called before a checkpoint is taken that will be kept. Forgets old ones of this sandbox to make
 * room. -EDQUOT: the tenant has no room even then. */
int checkpoints_make_room(struct sandbox *b, struct sg_error *e);
