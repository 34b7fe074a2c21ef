/* backup.json: the parts of a backup and their checksums. For backup/ only. */
#pragma once

#include "front/backup/backup.h"
#include "front/backup/tree.h"

#define PART_VOLUMES "volumes"

struct part {
    char path[64]; /* front, guard, layers/ID, volumes/TENANT/ID */
    struct tree_sum sum;
};

struct manifest {
    struct backup_report report;
    struct part *parts;
    size_t n, cap;
    bool old_sums; /* see tree_pass */
};

void manifest_done(struct manifest *m);
void manifest_add(struct manifest *m, const char *path, const struct tree_sum *sum);
int manifest_write(const struct manifest *m, int dir, struct sg_error *e);
/* Refuses a format that this program cannot read. `name` is what errors call the directory. */
int manifest_read(int dir, const char *name, struct manifest *ret, struct sg_error *e);
