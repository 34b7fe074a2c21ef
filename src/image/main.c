/* sandglass-image: arguments, descriptors and the report. See image.h and wire/image.h. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "image/layout.h"
#include "image/sink.h"
#include "lib/base/fd.h"
#include "lib/text/parse.h"

#define MIB (1ull << 20)

/* What was said on the command line. */
struct order {
    struct image_limits limits;
    uint64_t blocks[IMAGE_BLOBS];
    size_t n;
};

struct role {
    const char *name;
    int (*run)(const struct order *o, struct image_report *ret, struct sg_error *e);
    unsigned outputs; /* descriptors from IMAGE_OUT on that it writes */
    uint64_t memory;
    unsigned cpu_s;
    bool blobs; /* takes numbers of blocks */
};

/* ---- roles ----------------------------------------------------------------------------------- */

static int run_unpack(const struct order *o, struct image_report *ret, struct sg_error *e)
{
    return image_unpack(STDIN_FILENO, IMAGE_OUT, IMAGE_LIST, &o->limits, ret, e);
}

static int run_write(const struct order *o, struct image_report *ret, struct sg_error *e)
{
    int lists[IMAGE_BLOBS];

    for (size_t i = 0; i < o->n; i++)
        lists[i] = IMAGE_LIST + (int)i;
    return image_write(IMAGE_OUT, lists, o->blocks, o->n, &o->limits, ret, e);
}

static int run_check(const struct order *o, struct image_report *ret, struct sg_error *e)
{
    struct stat st;

    if (fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
        return err_invalid(e, "the image is no regular file");
    if (st.st_size == 0 || (uint64_t)st.st_size > META_MAX)
        return err_invalid(e, "an image of %lld bytes cannot be", (long long)st.st_size);
    size_t len = (size_t)st.st_size;
    void *meta = mmap(NULL, len, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
    if (meta == MAP_FAILED)
        return err_errno(e, "read the image");
    int r = image_check(meta, len, o->blocks, o->n, ret, e);
    munmap(meta, len);
    return r;
}

static const struct role roles[] = {
    {.name = "unpack", .run = run_unpack, .outputs = 2, .memory = 512 * MIB, .cpu_s = 3600},
    {.name = "write",
     .run = run_write,
     .outputs = 1,
     .memory = 4096 * MIB,
     .cpu_s = 600,
     .blobs = true},
    {.name = "check",
     .run = run_check,
     .memory = META_MAX + 512 * MIB,
     .cpu_s = 120,
     .blobs = true},
};

/* ---- arguments ------------------------------------------------------------------------------- */

static int take_limit(struct image_limits *l, const char *arg, struct sg_error *e)
{
    static const struct {
        const char *name;
        size_t at;
    } names[] = {
        {"bytes=", offsetof(struct image_limits, bytes)},
        {"ratio=", offsetof(struct image_limits, ratio)},
        {"entries=", offsetof(struct image_limits, entries)},
        {"path=", offsetof(struct image_limits, path)},
        {"depth=", offsetof(struct image_limits, depth)},
        {"xattrs=", offsetof(struct image_limits, xattrs)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t len = strlen(names[i].name);
        uint64_t *value = (uint64_t *)(void *)((char *)l + names[i].at);

        if (strncmp(arg, names[i].name, len) == 0)
            return parse_u64(names[i].name, arg + len, 1, *value, value, e); /* lowers it */
    }
    return err_invalid(
        e, "'%s' is none of the limits bytes=, ratio=, entries=, path=, depth=, xattrs=", arg);
}

static int take_arguments(const struct role *role, char **args, struct order *ret,
                          struct sg_error *e)
{
    int r = 0;

    for (; *args && r == 0; args++) {
        if (!role->blobs || strchr(*args, '='))
            r = take_limit(&ret->limits, *args, e);
        else if (ret->n == IMAGE_BLOBS)
            r = err_invalid(e, "an image has 1 to %u layers", IMAGE_BLOBS);
        else
            r = parse_u64("blocks", *args, 0, UINT32_MAX - 1, &ret->blocks[ret->n++], e);
    }
    return r;
}

static int check_outputs(const struct role *role, struct sg_error *e)
{
    struct stat st;

    for (int fd = IMAGE_OUT; fd < IMAGE_OUT + (int)role->outputs; fd++)
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 0)
            return err_invalid(e, "descriptor %d is no empty file to write to", fd);
    return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static int run(const struct role *role, char **args, struct image_report *report,
               struct sg_error *e)
{
    struct order o = {.limits = IMAGE_LIMITS};
    int r = take_arguments(role, args, &o, e);

    if (r == 0)
        r = check_outputs(role, e);
    if (r < 0)
        return r;
    digest_prepare();
    r = image_confine(role->memory, role->cpu_s, e);
    if (r == 0)
        r = role->run(&o, report, e);
    /* What is not whole must not look as if it was. */
    for (int fd = IMAGE_OUT; r < 0 && fd < IMAGE_OUT + (int)role->outputs; fd++)
        if (ftruncate(fd, 0) < 0)
            break;
    return r;
}

int main(int argc, char **argv)
{
    struct image_report report = {0}, failed = {.magic = IMAGE_MAGIC};
    struct sg_error e = {0};
    const struct role *role = NULL;

    for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(roles); i++)
        if (strcmp(argv[1], roles[i].name) == 0)
            role = &roles[i];
    if (!role) {
        fprintf(stderr,
                IMAGE_PROGRAM ": this program is started by 'sandglass serve', not by hand\n");
        return 2;
    }
    int r = run(role, argv + 2, &report, &e);
    report.magic = IMAGE_MAGIC;
    if (r < 0) {
        failed.code = r;
        failed.kind = (int32_t)e.kind;
        snprintf(failed.message, sizeof(failed.message), "%.255s", e.message);
        fprintf(stderr, IMAGE_PROGRAM ": %s\n", e.message);
        report = failed;
    }
    return fd_write_all(STDOUT_FILENO, &report, sizeof(report)) < 0 || r < 0;
}
