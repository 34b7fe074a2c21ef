#include "inside/files/layer_stack_origin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "inside/files/layer_file.h"

#define KEPT_DIR "origins"
#define KEPT_MAX 1024 /* each costs the warden an inode */

enum { AT_VERSION, AT_MAGIC, AT_LENGTH, AT_ORDER, AT_TYPE, AT_UUID, AT_HANDLE = 21 };
#define MAGIC      0xfb
#define HANDLE_MAX 128
/* A handle of tmpfs: generation and number of the inode. */
#define TMPFS_TYPE   1
#define TMPFS_HANDLE 12
#define AT_INODE     (AT_HANDLE + 4)
/* One of btrfs: number of the inode, of its subvolume, and generation. */
#define BTRFS_TYPE   0x4d
#define BTRFS_HANDLE 20
#define AT_SUBVOLUME (AT_HANDLE + 8)

struct uuid_answer {
    unsigned char len, uuid[ORIGIN_UUID];
};
#define GET_UUID _IOR(0x15, 0, struct uuid_answer) /* FS_IOC_GETFSUUID */

union handle {
    struct file_handle h;
    char room[sizeof(struct file_handle) + HANDLE_MAX];
};

static int get_uuid(int fd, unsigned char ret[ORIGIN_UUID])
{
    struct uuid_answer a;

    if (ioctl(fd, GET_UUID, &a) < 0)
        return -errno;
    if (a.len != ORIGIN_UUID)
        return -ENOTTY;
    memcpy(ret, a.uuid, ORIGIN_UUID);
    return 0;
}

int origin_get(int fd, struct origin *ret)
{
    ssize_t n = fgetxattr(fd, layer_mark_name(MARK_ORIGIN), ret->v, sizeof(ret->v));

    if (n < 0)
        return errno == ERANGE ? -ENODATA : -errno;
    if (n <= AT_HANDLE || n > AT_HANDLE + HANDLE_MAX || ret->v[AT_MAGIC] != MAGIC ||
        ret->v[AT_VERSION] != 0 || ret->v[AT_LENGTH] != n)
        return -ENODATA;
    ret->len = (size_t)n;
    return 0;
}

int origin_set(int fd, const struct origin *o)
{
    return layer_set_mark(fd, MARK_ORIGIN, o->v, o->len);
}

int origin_make(int fd, struct origin *ret)
{
    union handle u = {.h = {.handle_bytes = HANDLE_MAX}};
    unsigned char uuid[ORIGIN_UUID] = {0};
    int mount, r = get_uuid(fd, uuid);

    if (r < 0)
        return r;
    if (name_to_handle_at(fd, "", &u.h, &mount, AT_EMPTY_PATH) < 0)
        return -errno;
    *ret = (struct origin){.len = AT_HANDLE + u.h.handle_bytes};
    ret->v[AT_MAGIC] = MAGIC;
    ret->v[AT_LENGTH] = (unsigned char)ret->len;
    ret->v[AT_ORDER] = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    ret->v[AT_TYPE] = (unsigned char)u.h.handle_type;
    memcpy(ret->v + AT_UUID, uuid, ORIGIN_UUID);
    memcpy(ret->v + AT_HANDLE, u.h.f_handle, u.h.handle_bytes);
    return 0;
}

static bool is_btrfs(const struct origin *o)
{
    return o->v[AT_TYPE] == BTRFS_TYPE && o->len == AT_HANDLE + BTRFS_HANDLE;
}

static void name_file_system(const struct origin *o, unsigned char ret[ORIGIN_UUID])
{
    memcpy(ret, o->v + AT_UUID, ORIGIN_UUID);
    for (size_t i = 0; is_btrfs(o) && i < sizeof(uint64_t); i++)
        ret[i] ^= o->v[AT_SUBVOLUME + i];
}

int origin_file_system(int fd, unsigned char ret[ORIGIN_UUID])
{
    struct origin o;
    int r = origin_make(fd, &o);

    if (r == 0)
        name_file_system(&o, ret);
    return r;
}

bool origin_is_on(const struct origin *o, const unsigned char id[ORIGIN_UUID])
{
    unsigned char own[ORIGIN_UUID];

    name_file_system(o, own);
    return memcmp(own, id, ORIGIN_UUID) == 0;
}

ino_t origin_inode(const struct origin *o)
{
    uint64_t number;

    if (is_btrfs(o)) {
        memcpy(&number, o->v + AT_HANDLE, sizeof(number));
        return (ino_t)number;
    }
    if (o->v[AT_TYPE] != TMPFS_TYPE || o->len != AT_HANDLE + TMPFS_HANDLE)
        return 0;
    memcpy(&number, o->v + AT_INODE, sizeof(number)); /* two words, the lower first */
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
        number = number << 32 | number >> 32;
    return (ino_t)number;
}

bool origin_is_of(const struct origin *o, int fd)
{
    struct origin other;

    return origin_make(fd, &other) == 0 && other.len == o->len &&
           memcmp(other.v, o->v, o->len) == 0;
}

/* ---- kept origins ---------------------------------------------------------------------------- */

void origin_name(ino_t number, char ret[ORIGIN_NAME])
{
    snprintf(ret, ORIGIN_NAME, "%llu", (unsigned long long)number);
}

int origin_open_kept(int scratch, int *ret)
{
    int fd = openat(scratch, KEPT_DIR, LAYER_DIR_FLAGS);

    if (fd < 0)
        return -errno;
    *ret = fd;
    return 0;
}

static bool is_full(int kept)
{
    AUTO(layer_closedir_p) DIR *d = layer_list(kept);
    const char *name;
    size_t n = 0;

    while (n <= KEPT_MAX && layer_next(d, &name) > 0)
        n++;
    return n > KEPT_MAX;
}

int origin_keep(int scratch, ino_t number)
{
    AUTO(close_p) int kept = -1, fd = -1;
    char name[ORIGIN_NAME];
    int r;

    if (mkdirat(scratch, KEPT_DIR, 0700) < 0 && errno != EEXIST)
        return -errno;
    r = origin_open_kept(scratch, &kept);
    if (r < 0)
        return r;
    origin_name(number, name);
    fd = openat(kept, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST ? 0 : -errno;
    if (!is_full(kept))
        return 0;
    unlinkat(kept, name, 0);
    return -EMLINK;
}

bool origin_is_kept(int kept, ino_t number)
{
    char name[ORIGIN_NAME];

    if (kept < 0)
        return false;
    origin_name(number, name);
    return faccessat(kept, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
