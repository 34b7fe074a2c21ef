/* LIST: what a layer's tar said, in plain records, in its order.
 *
 * Numbers are little-endian. The file begins with 8 bytes of magic; records follow, each struct record
 * and then the path, the link's target and the attributes (attrs.h), and zeros up to a multiple of 8. The last
 * record is RECORD_END: its `size` is the number of records before it, its `block` the number of BLOB's blocks, its
 * target BLOB's SHA-256. So a LIST knows its BLOB, and one that was cut is no LIST.
 *
 *   kind           path                        size         block              target
 *   RECORD_FILE      clean (path.h)              bytes        first, in BLOB     -
 *   RECORD_DIR       clean, or "" for the root   -            -                  -
 *   RECORD_SYMLINK   clean                       -            -                  the text of the link
 *   RECORD_HARDLINK  clean                       -            -                  a clean path; nothing else is set
 *   RECORD_FIFO      clean                       -            -                  -
 *   RECORD_WHITEOUT  what is hidden              -            -                  -
 *   RECORD_OPAQUE    the directory               -            -                  -
 *
 * The reader takes nothing for granted: whoever uses a record need not check it again. */
#pragma once

#include "image/attrs.h"
#include "image/sink.h"

#define RECORDS_MAGIC "SGLIST1\n"

enum record_kind {
    RECORD_FILE = 1,
    RECORD_DIR,
    RECORD_SYMLINK,
    RECORD_HARDLINK,
    RECORD_FIFO,
    RECORD_WHITEOUT,
    RECORD_OPAQUE,
    RECORD_END,
    RECORD_MAX_,
};

struct record {
    uint8_t kind, zero;
    uint16_t mode; /* 07777 at most */
    uint32_t uid, gid, mtime_ns;
    int64_t mtime;
    uint64_t size;
    uint32_t block;
    uint16_t path_len, target_len;
    uint16_t attrs_len, zero2;
    uint32_t zero3;
};
_Static_assert(sizeof(struct record) == 48, "as in the file");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are written as they are in memory");

/* A record with its texts, which end with a zero byte. */
struct record_entry {
    struct record r;
    const char *path, *target;
    const uint8_t *attrs;
};

void records_begin(struct sink *s);
void records_add(struct sink *s, const struct record_entry *entry);
void records_finish(struct sink *s, uint64_t n, uint32_t blocks, const uint8_t blob[IMAGE_DIGEST]);

struct records;
/* blocks: how many BLOB has. */
int records_open(int fd, uint64_t blocks, struct records **ret, struct sg_error *e);
void records_close_p(struct records **l);
/* 1 and the next entry, which stays until the next call; 0 after the last. */
int records_next(struct records *l, struct record_entry *ret, struct sg_error *e);
void records_rewind(struct records *l);
/* After the last: BLOB's SHA-256, and that of the list itself. */
void records_digests(struct records *l, uint8_t blob[IMAGE_DIGEST], uint8_t list[IMAGE_DIGEST]);
