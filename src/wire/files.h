/* The contract between the warden and a files worker.
 *
 * Files that sandboxes wrote are hostile: names, depths, sizes and attributes are chosen by their
 * programs. So the warden never walks or copies them. For each piece of such work it starts a files
 * worker (inside/files), a process that is nobody on the host: root of a user namespace that maps to
 * ids which nothing else has, with a filter, a deadline, and nothing open but the trees that the work
 * is about. They are mounted for it with mapped ids: on disk the ids are those inside a sandbox, 0
 * to 65535, and so they are in the worker's namespace.
 *
 * The warden sends one request with its descriptors; the worker sends one answer and exits:
 *
 *   FILES_SAVE    makes one directory of `below` and the layers            (inside/files/layer_save.h)
 *   FILES_MERGE   makes one layer of several; the uppers are still written (inside/files/layer_stack_merge.h)
 *   FILES_CARRY   copies open files to the last layer, which is empty      (inside/files/layer_stack_carry.h)
 *   FILES_REMOVE  removes each layer
 *   FILES_DIFF    tells what differs between the layers and the uppers      (inside/files/layer_diff.h)
 *
 * Disks in memory cannot be mounted so before Linux 6.6, and overlays keep their marks in attributes that
 * only root of the host can read. Then the worker stays root of the host (FILES_TRUSTED), with few
 * capabilities. */
#pragma once

#include <stdint.h>

#define FILES_MAGIC      0x53464c31u
#define FILES_ROLE       "sandglass-files"
#define FILES_FD         3  /* its socket */
#define FILES_MOUNTS_MAX 64 /* trees */
#define FILES_LAYERS_MAX 112
#define FILES_NAME       32

enum files_op { FILES_SAVE, FILES_MERGE, FILES_CARRY, FILES_REMOVE, FILES_DIFF, FILES_OP_MAX_ };

enum files_flag {
    FILES_TRUSTED = 1 << 0, /* marks of overlays are trusted.overlay.*, not user.overlay.* */
    FILES_DURABLE = 1 << 1, /* SAVE: on disk before it is answered */
};

/* The list of FILES_DIFF, a memfd of the front's. Before: a path, or nothing; changes after it are
 * told. Then: 'm' if there are more, 'l' if some were left out, or '.'; and for each change "CT SIZE
 * PATH", ended by a zero byte. C: A, M, D. T: f, d, l, o. In the order of the paths' names. */
#define FILES_DIFF_PAGE 1000
#define FILES_DIFF_MAX  (5u << 20)

/* A directory of one of the trees. */
struct files_layer {
    uint32_t mount;
    char dir[FILES_NAME];
};

/* Descriptors: the trees; the first is the one in which something is made. CARRY: one more, a list of
 * paths, each ended by a zero byte. DIFF: one more, its list; the trees can only be read. */
struct files_request {
    uint32_t magic, op, flags;
    uint32_t deadline_s; /* then the worker is killed */
    uint32_t n_mounts;
    uint32_t n_layers, n_uppers; /* of v: layers, bottom first; MERGE, DIFF: then uppers */
    uint32_t first_id;           /* SAVE, TRUSTED: id 0 of the sandbox in the layers */
    uint64_t most;               /* SAVE: bytes that may be copied; 0: any number */
    char below[FILES_NAME];      /* SAVE: a directory of the first tree; "": none */
    char aside[FILES_NAME];      /* SAVE, MERGE: the name of the result while it is being made */
    char name[FILES_NAME];       /* and when it is complete */
    struct files_layer v[FILES_LAYERS_MAX];
};

struct files_answer {
    uint32_t magic;
    int32_t code, kind; /* 0, or -errno and enum sg_error_kind */
    uint64_t bytes;     /* SAVE: size on disk */
    char message[256];
};
