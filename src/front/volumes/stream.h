/* A conversation with a volume's helper (wire/volume.h): one request and its answer. All that comes
 * from the helper is hostile input: programs in sandboxes chose names and sizes.
 *
 *   volume_stream_new --> on_open --> [on_room...] --> on_record... --> on_end
 *
 * on_end is the last callback, and then the stream is gone. After volume_stream_drop there is none.
 * Nothing is read ahead of the owner, and little is kept of what it writes. */
#pragma once

#include "front/core/front.h"
#include "front/core/volumes.h"
#include "wire/volume.h"

struct volume_stream;

struct volume_stream_handlers {
    /* It can be written to: for VOLUME_WRITE and VOLUME_IMPORT alone. */
    void (*on_open)(void *owner);
    void (*on_room)(void *owner); /* volume_stream_write said false, now it may go on */
    void (*on_entry)(void *owner, const struct volume_entry *entry, const char *path,
                     const char *target);
    void (*on_data)(void *owner, const void *p, size_t len);
    /* r: 0 and the helper's end; or an error: there is no helper, or it was killed. */
    void (*on_end)(void *owner, int r, const struct volume_end *end, const struct sg_error *e);
};

struct volume_stream *volume_stream_new(struct front *f, const struct store_volume *v,
                                        const struct volume_request *q, const char *path,
                                        const struct volume_stream_handlers *h, void *owner);
void volume_stream_drop(struct volume_stream **s); /* *s may be NULL */
/* False: stop until on_room; the bytes were taken all the same. */
bool volume_stream_write(struct volume_stream *s, const void *p, size_t len);
void volume_stream_write_end(struct volume_stream *s);
void volume_stream_pause(struct volume_stream *s);
void volume_stream_resume(struct volume_stream *s);
