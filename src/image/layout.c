#include "image/layout.h"

#include <sys/stat.h>

#define CHUNK_ALIGN 8

struct shape layout_shape(uint16_t mode, uint64_t size, size_t attrs_len)
{
    size_t fixed = sizeof(struct erofs_inode) +
                   (attrs_len > 0 ? sizeof(struct erofs_attrs_head) + attrs_len : 0);
    struct shape s = {.layout = EROFS_PLAIN, .fixed = (uint16_t)fixed};

    if (S_ISREG(mode) && size > 0) {
        s.layout = EROFS_CHUNKED;
        s.chunk = (uint16_t)((fixed + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN);
        s.fixed = s.chunk + (uint16_t)sizeof(struct erofs_chunk);
    } else if (S_ISDIR(mode) || S_ISLNK(mode)) {
        s.tail = (uint16_t)(size % IMAGE_BLOCK);
        s.blocks = (uint32_t)(size / IMAGE_BLOCK);
        if (s.tail > 0 && fixed + s.tail <= IMAGE_BLOCK) {
            s.layout = EROFS_INLINE;
        } else if (s.tail > 0) {
            s.tail = 0;
            s.blocks++;
        }
    }
    return s;
}

uint64_t layout_place(uint64_t *end, const struct shape *s)
{
    uint64_t at = *end;

    if (at % IMAGE_BLOCK + s->fixed + s->tail > IMAGE_BLOCK)
        at = image_blocks(at) * IMAGE_BLOCK;
    *end = (at + s->fixed + s->tail + EROFS_SLOT - 1) / EROFS_SLOT * EROFS_SLOT;
    return at;
}

uint64_t layout_inodes_at(size_t devices)
{
    return EROFS_DEVICES_AT + image_blocks(devices * sizeof(struct erofs_device)) * IMAGE_BLOCK;
}

uint8_t layout_type(uint16_t mode)
{
    return S_ISREG(mode) ? 1 : S_ISDIR(mode) ? 2 : S_ISFIFO(mode) ? 5 : S_ISLNK(mode) ? 7 : 0;
}

uint32_t layout_chunk_form(uint64_t blocks)
{
    uint32_t bits = 0;

    while ((uint64_t)1 << bits < blocks)
        bits++;
    return EROFS_CHUNKS | bits;
}
