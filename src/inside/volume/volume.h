/* The volume helper: see wire/volume.h.
 *
 * Its first process takes connections from the warden and reads nothing that comes over them. For
 * each it forks a child, which serves that one request and exits; children cannot fork. A helper
 * that had nothing to do for HELPER_IDLE_MS ends by itself. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "wire/volume.h"

/* What all processes of a helper know about the volume's size. */
struct volume_size {
    _Atomic uint64_t used;        /* bytes */
    _Atomic uint64_t measured_ns; /* when it was last counted; 0: never */
    _Atomic uint64_t beat_ns;     /* when who measures now last said so; 0: nobody does */
};

/* One connection, in the child that serves it. */
struct volume_serving {
    int sock, root; /* the connection, and the volume */
    struct volume_size *size;
    struct volume_request q;
    char path[VOLUME_PATH_MAX];
    char *out; /* records that were not sent yet */
    size_t out_len;
    char why[320]; /* more about the error than its number says; "" : nothing */
};

int volume_main(void);

/* confine.c. Gives up all that the helper does not need; then, in a child, what the child does not
 * need. */
int volume_confine(int root, struct sg_error *e);
int volume_confine_child(void);

/* serve.c. Reads the request and answers it. */
void volume_serve(int sock, int root, struct volume_size *size);
/* Takes records of bytes until their end, and gives each to fn, which may fail. `data`: room for
 * VOLUME_RECORD_MAX bytes. */
int volume_take_body(struct volume_serving *s, char *data,
                     int (*fn)(void *arg, const char *data, size_t len), void *arg);
/* Reads so many bytes of the connection. -ECANCELED: it closes before. */
int volume_receive(int sock, void *p, size_t len);
/* Adds a record to what is sent; sends it when there is enough of it. -EPIPE: nobody reads. */
int volume_put(struct volume_serving *s, enum volume_record_kind kind, const void *p, size_t len);
/* Adds the entry of an open file, under this path. */
int volume_put_entry(struct volume_serving *s, int fd, const char *path);

/* paths.c. Opens a path of the volume. Links are followed inside the volume, never out of it. */
int volume_open(int root, const char *path, int flags);
/* Opens the directory that has the last name of the path, which is not "/". force: makes it and its
 * parents, if they are missing, for this owner. */
int volume_open_parent(const struct volume_serving *s, int *ret_dir, const char **ret_name);
int volume_give(const struct volume_serving *s, int fd, mode_t mode);

/* The operations; 0 or -errno. list.c, write.c, change.c, measure.c, pack.c, unpack.c */
int volume_do_list(struct volume_serving *s);
int volume_do_write(struct volume_serving *s);
int volume_do_mkdir(struct volume_serving *s);
int volume_do_change(struct volume_serving *s);
int volume_do_remove(struct volume_serving *s);
int volume_do_export(struct volume_serving *s);
int volume_do_import(struct volume_serving *s);
/* Counts the volume anew, if that was more than `age_s` ago; waits if another process is at it: one
 * for each volume. */
int volume_measure(struct volume_serving *s, uint32_t age_s);
/* Takes room for `bytes` more, or, for 0, for a name; the latter measures first. -EDQUOT. */
int volume_take_room(struct volume_serving *s, uint64_t bytes);
struct stat;
void volume_give_back(struct volume_serving *s, const struct stat *st);
void volume_size_unknown(struct volume_serving *s);
