/* The contract between the front and a volume helper.
 *
 * A volume is a directory that sandboxes mount. What is in it was written by hostile programs, so
 * neither the warden nor the front touches it. For each volume whose contents are asked for over
 * HTTP the warden starts a helper (inside/volume), which is nobody on the host and sees nothing but
 * that directory, and gives it one connection for each request of the front:
 *
 *   front                          warden                          helper
 *   ORDER_VOLUME (open)  ------->  makes a socket pair  ------->   VOLUME_MAGIC + one end
 *                        <-------  the other end
 *   volume_request, path  ------------------------------------->   a child serves this one
 *   WRITE: DATA... END    ------------------------------------->
 *                         <-------------------------------------   ENTRY..., DATA..., END
 *
 * A connection is a stream of records. Neither side reads ahead: who does not read stops the other.
 * If a connection closes without END, the helper was killed: the next request starts another. */
#pragma once

#include <stdint.h>

#include "lib/base/base.h"

#define VOLUME_ROLE  "sandglass-volume"
#define VOLUME_FD    3           /* the helper's socket to the warden */
#define VOLUME_MAGIC 0x53565631u /* "SVV1" */

#define VOLUME_PATH_MAX    4096                                       /* with the NUL */
#define VOLUME_DEPTH_MAX   64                                         /* of a list */
#define VOLUME_LISTED_MAX  (VOLUME_PATH_MAX + VOLUME_DEPTH_MAX * 256) /* a path in a list */
#define VOLUME_RECORD_MAX  65536u /* of what follows a struct volume_record */
#define VOLUME_ID_MAX      65535u
#define VOLUME_STREAMS_MAX 64 /* requests of one volume at a time */

/* A message of the warden to the helper. The first one brings the directory, the others a
 * connection each. */
struct volume_message {
    uint32_t magic;
};

enum volume_op {
    VOLUME_STAT,   /* of the last name itself, if it is a link */
    VOLUME_LIST,   /* of a directory, `depth` levels */
    VOLUME_READ,   /* a file: its entry, then its bytes */
    VOLUME_WRITE,  /* a whole file; it appears, or takes the place of another, when all is there */
    VOLUME_MKDIR,  /* */
    VOLUME_CHANGE, /* owner and mode */
    VOLUME_REMOVE, /* with all that is in it */
    VOLUME_USAGE,  /* measures the volume, if that was more than `depth` seconds ago */
    VOLUME_EXPORT, /* DATA is a tar of a directory */
    VOLUME_IMPORT, /* DATA... END from the front, a tar, goes into a directory: all of it or nothing */
    VOLUME_OP_MAX_
};

/* flags of a request */
#define VOLUME_FORCE    1u /* makes missing parents; MKDIR: it may be there already */
#define VOLUME_HAS_UID  2u
#define VOLUME_HAS_GID  4u
#define VOLUME_HAS_MODE 8u
#define VOLUME_KEEP     16u /* WRITE: a file whose place is taken keeps its owner */

struct volume_request {
    uint32_t magic, op, flags;
    uint32_t uid, gid, mode, depth;
    uint32_t path_len;  /* follows: absolute, without a NUL */
    uint64_t max_bytes; /* the volume's size */
};

enum volume_record_kind { VOLUME_ENTRY = 1, VOLUME_DATA, VOLUME_END };

struct volume_record {
    uint32_t kind, len;
};

enum volume_type { VOLUME_FILE, VOLUME_DIRECTORY, VOLUME_LINK, VOLUME_OTHER, VOLUME_TYPE_MAX_ };

/* Of a VOLUME_ENTRY; the path and the target of a link follow, without NULs. */
struct volume_entry {
    uint32_t type, mode, uid, gid;
    uint64_t size;
    int64_t atime_ms, mtime_ms, ctime_ms;
    uint32_t path_len, target_len;
};

/* Of a VOLUME_END. */
struct volume_end {
    int32_t code;      /* 0 or -errno */
    uint32_t measured; /* whether `used` is known */
    uint64_t used;     /* bytes of the volume */
    char message[320]; /* says why, and may have names in it that came from anywhere */
};

/* Brings a path of a client into the one form that requests have: absolute, without "." and "..",
 * empty names and a slash at the end. -EINVAL: a NUL inside; -ENAMETOOLONG. */
int volume_path(const char *given, size_t len, char ret[VOLUME_PATH_MAX]);
/* Whether a request, whose path has come too, is as the contract says. */
bool volume_request_sound(const struct volume_request *q, const char *path);

/* Finds the first record in bytes that have come. Returns its length with the head, 0 if more must
 * come, or -EPROTO. */
int64_t volume_take(const void *p, size_t len, struct volume_record *ret);
/* The entry in the payload of a record. The texts are no strings, and may hold any byte. */
int volume_entry_read(const void *p, size_t len, struct volume_entry *ret, const char **ret_path,
                      const char **ret_target);
int volume_end_read(const void *p, size_t len, struct volume_end *ret);
