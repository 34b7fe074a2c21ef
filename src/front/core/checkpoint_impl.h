/* What the files of checkpoint.h share. */
#pragma once

#include "front/core/checkpoint.h"

#define THINNED_MAX        512 /* names and labels of a sandbox that are remembered as thinned */
#define REPORT_MAX         (256u * 1024)
#define REPORT_WAY_MAX     64 /* entries of what is in the way */
#define REPORT_DROPPED_MAX 64 /* descriptors of one kernel */

#define REASON_GONE "its copy has ended: its memory was needed, or what kept it has failed"
/* -EOWNERDEAD */
int checkpoint_say_lost(const struct checkpoint *c, struct sg_error *e);

/* What is of one sandbox. */
struct lineage {
    struct lineage *next;
    char sandbox_id[ID_LEN + 1];
    struct checkpoint *oldest;
    char *thinned[THINNED_MAX];
    size_t n_thinned; /* so far: a ring */
};

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

struct checkpoint *checkpoint_new(struct front *f); /* the caller's reference */
struct checkpoint *checkpoint_ref(struct checkpoint *c);
void checkpoint_unref(struct checkpoint *c); /* NULL is allowed */
/* A serial that nobody has, behind that one too, which a sandbox of an earlier front has. */
uint64_t checkpoints_next_serial(struct front *f, uint64_t after);
/* The table takes a reference of its own. */
void checkpoint_add(struct checkpoint *c);
/* Out of the table, and nobody is told. Harmless if it is not there. */
void checkpoint_drop(struct checkpoint *c);
struct lineage *lineage_find(struct front *f, const char *sandbox_id);
void lineage_remember_thinned(struct lineage *l, const char *label);
void lineages_each(struct front *f, void (*fn)(struct front *f, struct lineage *l));
/* What the kernels of all of a tenant's have in memory. */
uint64_t checkpoints_memory(struct front *f, const char *tenant);

/* ---- checkpoint_note.c ----------------------------------------------------------------------- */

/* A sealed memfd. */
int checkpoint_note_save(const struct checkpoint *c, struct sg_error *e);
/* Name, tenant and sandbox are the warden's to tell. */
int checkpoint_note_load(int memfd, struct checkpoint *c, struct sg_error *e);

/* ---- checkpoint_report.c --------------------------------------------------------------------- */

/* One EVENT_KERNEL as an entry of `contexts`; NULL: it is none that an agent says. */
json_t *report_read_context(const void *event, size_t len);
/* What the broker says: a memfd; NULL: it cannot be read. Not trusted, and not yet bounded. */
json_t *report_read(int memfd);
/* Notes in `contexts` what was copied and what was dropped; how many were. */
size_t report_mark_carried(json_t *contexts, const json_t *broker);
/* {"inTheWay": [...]} of what the broker says, or if that is nothing, of a message; or of a cell
 * that runs. */
json_t *report_in_the_way(const json_t *broker, const char *message);
json_t *report_cell_in_the_way(const char *message);
/* {"kernels": [...]}. gone: the copies are not there (any more), for that reason; NULL: they are.
 */
json_t *report_kernels(const json_t *contexts, const char *gone);

/* ---- checkpoint_take.c ----------------------------------------------------------------------- */

/* The error of a sandbox that does not run: -EBUSY if it is paused, -ENOENT if it has ended. */
int checkpoint_no_sandbox(const struct sandbox *b, struct sg_error *e);

/* ---- checkpoint_adopt.c ---------------------------------------------------------------------- */

/* Gives a sandbox the contexts of a checkpoint. Called back exactly once; gone: kernels did not
 * come along, for that reason (static), or NULL. */
typedef void (*adopt_done)(void *arg, int r, const struct sg_error *e, const char *gone);
void checkpoint_adopt(struct sandbox *b, struct checkpoint *c, const char *gone, adopt_done done,
                      void *arg);

/* ---- checkpoint_thin.c ----------------------------------------------------------------------- */

/* After one was taken: those of its sandbox that do not stay are forgotten. */
void checkpoints_thin(struct front *f, struct lineage *l);
/* Before one is taken that is to be kept: -EDQUOT if the tenant has no room, also when what can go
 * of this sandbox is gone. */
int checkpoints_make_room(struct sandbox *b, struct sg_error *e);
