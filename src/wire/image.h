/* The contract with an image worker, `sandglass-image` (src/image): what makes worlds of hostile image layers.
 *
 * A worker has a role, its first argument, and works on descriptors that it is given; it knows no path.
 * All of them but a layer's stream are regular files, and those that are written are empty.
 *
 *   unpack [bytes=N] [ratio=N] [entries=N] [path=N] [depth=N] [xattrs=N]
 *          0: a layer, as tar, gzip or zstd   3: BLOB   4: LIST
 *   write  [entries=N] BLOCKS...
 *          3: META   from 4 on: a LIST for each argument, the lowest layer first. BLOCKS are those of its BLOB
 *   check  BLOCKS...
 *          0: META. BLOCKS are the sizes of its blobs' files, in blocks, in their order
 *
 * At its end, a worker writes one struct image_report to descriptor 1 and exits with 0, or with 1 if the report has an error: then
 * the line is on descriptor 2 too, and what it has written is empty again. A worker that was killed
 * (processor time, memory) leaves no report. What a good report names is on disk. */
#pragma once

#include <stdint.h>

#define IMAGE_MAGIC   0x53474931u
#define IMAGE_PROGRAM "sandglass-image"
#define IMAGE_OUT     3 /* BLOB or META */
#define IMAGE_LIST    4 /* the first LIST */
#define IMAGE_BLOCK   4096u
#define IMAGE_DIGEST  32  /* bytes of a SHA-256 */
#define IMAGE_BLOBS   127 /* layers of one world */

/* What the limits are if no argument lowers them. */
#define IMAGE_BYTES_MAX (1ull << 40) /* of the layer, uncompressed */
#define IMAGE_RATIO_MAX \
    1032u /* uncompressed bytes for each compressed one; the most that gzip can do */
#define IMAGE_ENTRIES_MAX 4000000u /* of a layer; of a world, names */
#define IMAGE_PATH_MAX    4095u    /* bytes of a name in a layer, and of a link's target */
#define IMAGE_DEPTH_MAX   1024u    /* directories in each other */
#define IMAGE_XATTRS_MAX  3072u    /* bytes of the attributes of a file, as EROFS stores them */

struct image_report {
    uint32_t magic;
    int32_t code, kind;            /* 0, or -errno and enum sg_error_kind */
    uint32_t left_out;             /* unpack: entries that a world does not have, such as devices */
    uint64_t entries;              /* unpack: of LIST; write, check: inodes */
    uint64_t bytes;                /* unpack: of the layer, uncompressed; write: of META */
    uint64_t blocks;               /* unpack: of BLOB */
    uint8_t first[IMAGE_DIGEST];   /* unpack: SHA-256 of BLOB; write: of META */
    uint8_t list[IMAGE_DIGEST];    /* unpack: of LIST */
    uint8_t diff_id[IMAGE_DIGEST]; /* unpack: of the uncompressed layer */
    char message[256];
};
