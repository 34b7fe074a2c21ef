/* META: an EROFS image in the one form that a world has. The writer makes it and the checker asks for it, byte for
 * byte where a byte has a meaning that is not the image's own (names, owners, times, which blocks).
 *
 *   0       1024 zeros, struct erofs_super, zeros
 *   4096    a struct erofs_device for each blob, zeros up to the next block
 *   then    inodes, beginning with the root: breadth first, the entries of a directory in their order, each when its first name comes.
 *           So the inodes of one directory lie together. Each is followed by its attributes and, aligned to 8, the place of a file's
 *           contents; or by the tail of a directory or a link's target. None crosses a block; zeros are between them
 *   then    whole blocks of directories, and tails that did not fit, in the order of inodes
 *
 * All inodes are extended ones (64 bytes). A file is one chunk: its contents lie together in one blob. A directory is blocks of struct
 * erofs_dirent with the names behind them, filled up as long as the next entry fits; "." and ".." are
 * among the names, which are in the order of their bytes. Facts about EROFS: fs/erofs/erofs_fs.h in Linux. */
#pragma once

#include "image/image.h"

#define EROFS_MAGIC      0xe0f5e1e2u
#define EROFS_SUPER_AT   1024u
#define EROFS_DEVICES_AT IMAGE_BLOCK
#define EROFS_SLOT       32u /* inodes are numbered by such places */
#define EROFS_BLOCK_BITS 12
#define EROFS_INCOMPAT   0xcu  /* files in chunks, a table of devices */
#define EROFS_CHUNKS     0x20u /* chunks have a device and a block */
#define META_MAX         (4ull << 30)

struct erofs_super {
    uint32_t magic, checksum, feature_compat;
    uint8_t block_bits, extra_slots;
    uint16_t root;
    uint64_t inodes, epoch;
    uint32_t epoch_ns, blocks, inodes_at, shared_attrs_at;
    uint8_t uuid[16], volume[16];
    uint32_t feature_incompat;
    uint16_t compression, devices, devices_at; /* devices_at: in places of a struct erofs_device */
    uint8_t rest[38];
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_super) == 128, "as in the file");

struct erofs_device {
    char tag[64]; /* the blob's SHA-256 in hexadecimal digits */
    uint32_t blocks;
    uint8_t rest[60];
};
_Static_assert(sizeof(struct erofs_device) == 128, "as in the file");

enum erofs_layout { EROFS_PLAIN = 0, EROFS_INLINE = 2, EROFS_CHUNKED = 4 };

struct erofs_inode {
    uint16_t format; /* enum erofs_layout << 1 | 1 */
    uint16_t attrs;  /* 0, or 1 + words of attributes after their head */
    uint16_t mode, zero;
    uint64_t size;
    uint32_t data;   /* first block, or the form of the chunks */
    uint32_t number; /* from 1 on */
    uint32_t uid, gid;
    int64_t mtime;
    uint32_t mtime_ns, links;
    uint8_t rest[16];
};
_Static_assert(sizeof(struct erofs_inode) == 64, "as in the file");

struct erofs_attrs_head {
    uint32_t filter;
    uint8_t shared, rest[7];
};
_Static_assert(sizeof(struct erofs_attrs_head) == 12, "as in the file");

struct erofs_chunk {
    uint16_t zero, device; /* from 1 on */
    uint32_t block;
};
_Static_assert(sizeof(struct erofs_chunk) == 8, "as in the file");

struct erofs_dirent {
    uint64_t slot;
    uint16_t name_at;
    uint8_t type, zero;
} __attribute__((packed));
_Static_assert(sizeof(struct erofs_dirent) == 12, "as in the file");

/* What an inode of this type and size takes. */
struct shape {
    enum erofs_layout layout;
    uint16_t fixed;  /* bytes of the inode with attributes and chunk */
    uint16_t chunk;  /* where the chunk is in these, if it has one */
    uint16_t tail;   /* bytes behind it */
    uint32_t blocks; /* of data */
};
struct shape layout_shape(uint16_t mode, uint64_t size, size_t attrs_len);
/* Where the next inode goes: moves the end of what is placed. */
uint64_t layout_place(uint64_t *end, const struct shape *s);
/* Where inodes begin with so many devices. */
uint64_t layout_inodes_at(size_t devices);
/* EROFS's type of an entry; 0: a world has none such. */
uint8_t layout_type(uint16_t mode);
/* `data` of a file with so many blocks. */
uint32_t layout_chunk_form(uint64_t blocks);

static inline size_t layout_dirent_size(size_t name_len)
{
    return sizeof(struct erofs_dirent) + name_len;
}
