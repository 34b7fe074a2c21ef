#include "pull/tar.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/text/parse.h"
#include "pull/fault.h"

#define BLOCK       512
#define NAME_MAX_   1024
#define ENTRIES_MAX 20000
#define PAX_MAX     (64u << 10)

struct entry {
    struct map_node by_name;
    uint64_t offset, size;
    char *link; /* the name that it leads to; NULL: a file */
    char name[];
};

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[8], owner[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a tar's header");

/* What the headers before an entry say of it. */
struct said {
    char name[NAME_MAX_ + 1], link[NAME_MAX_ + 1];
    bool has_name, has_link, has_size;
    uint64_t size;
};

/* ---- numbers and names ----------------------------------------------------------------------- */

/* Octal digits, or GNU's form for large ones: a first byte of 0x80, then a number. */
static bool number(const char *field, size_t len, uint64_t *ret)
{
    const unsigned char *p = (const unsigned char *)field, *end = p + len;
    uint64_t n = 0;

    if (*p == 0x80) {
        while (++p < end) {
            if (n >> 54)
                return false;
            n = n << 8 | *p;
        }
        return *ret = n, true;
    }
    while (p < end && *p == ' ')
        p++;
    for (; p < end && *p >= '0' && *p <= '7'; p++)
        n = n << 3 | (unsigned)(*p - '0');
    return *ret = n, p == end || *p == '\0' || *p == ' ';
}

static bool checksum_right(const struct header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    uint64_t sum = 0, said;

    for (size_t i = 0; i < BLOCK; i++) {
        bool own = i >= offsetof(struct header, checksum) && i < offsetof(struct header, type);

        sum += own ? ' ' : bytes[i];
    }
    return number(h->checksum, sizeof(h->checksum), &said) && said == sum;
}

/* Takes a name apart and puts it together again, from `dir` on, which ends with a slash or is
 * empty. False: it leads out, or is too long. */
static bool normalise(const char *dir, const char *name, char ret[NAME_MAX_ + 1])
{
    size_t n = strlen(dir);

    if (name[0] == '/')
        n = 0;
    memcpy(ret, dir, n);
    for (const char *p = name; *p;) {
        size_t len = strcspn(p, "/");

        if (len == 2 && p[0] == '.' && p[1] == '.') {
            if (n == 0)
                return false;
            for (n--; n > 0 && ret[n - 1] != '/';)
                n--;
        } else if (len > 0 && !(len == 1 && p[0] == '.')) {
            if (n + len + 1 > NAME_MAX_)
                return false;
            memcpy(ret + n, p, len);
            n += len;
            ret[n++] = '/';
        }
        p += len + (p[len] == '/');
    }
    ret[n > 0 ? n - 1 : 0] = '\0';
    return n > 1;
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct entry *find(const struct tar *t, const char *name)
{
    return MAP_FIND(struct entry, x, &t->entries, hash_text(0, name), by_name,
                    strcmp(x->name, name) == 0);
}

static int add_entry(struct tar *t, const char *name, const char *link, uint64_t offset,
                     uint64_t size, struct sg_error *e)
{
    size_t len = strlen(name) + 1;
    struct entry *x;

    if (find(t, name))
        return fault_corrupt(e, "the archive has '%.200s' twice", name);
    x = xcalloc(1, sizeof(*x) + len);
    *x = (struct entry){.offset = offset, .size = size, .link = link ? xstrdup(link) : NULL};
    memcpy(x->name, name, len);
    map_add(&t->entries, &x->by_name, hash_text(0, x->name));
    return 0;
}

/* A link's target: of a hard link from the top, of a symbolic one from where it is. */
static bool link_target(char type, const char *name, const char *target, char ret[NAME_MAX_ + 1])
{
    char dir[NAME_MAX_ + 1] = "";
    const char *slash = strrchr(name, '/');

    if (type == '2' && slash)
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - name) + 1, name);
    return normalise(dir, target, ret);
}

static int take_entry(struct tar *t, const struct header *h, const struct said *said,
                      uint64_t offset, uint64_t size, struct sg_error *e)
{
    char raw[sizeof(h->prefix) + sizeof(h->name) + 2], raw_link[sizeof(h->link) + 1];
    char name[NAME_MAX_ + 1], link[NAME_MAX_ + 1];
    bool ustar = memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0];
    bool file = h->type == '0' || h->type == '\0' || h->type == '7';

    if (!file && h->type != '1' && h->type != '2')
        return 0;
    snprintf(raw, sizeof(raw), "%.155s%s%.100s", ustar ? h->prefix : "", ustar ? "/" : "", h->name);
    snprintf(raw_link, sizeof(raw_link), "%.100s", h->link);
    if (!normalise("", said->has_name ? said->name : raw, name))
        return 0;
    if (!file && !link_target(h->type, name, said->has_link ? said->link : raw_link, link))
        return 0;
    return add_entry(t, name, file ? NULL : link, offset, size, e);
}

/* ---- headers that say something of the next -------------------------------------------------- */

static void keep(const char *value, size_t len, char ret[NAME_MAX_ + 1], bool *ret_has)
{
    if (len > NAME_MAX_)
        len = 0; /* nothing that is looked for has such a name */
    memcpy(ret, value, len);
    ret[len] = '\0';
    *ret_has = true;
}

/* Records of "LENGTH key=value\n". */
static bool take_pax(const char *text, size_t len, struct said *said)
{
    while (len > 0) {
        char digits[8] = "";
        const char *space = memchr(text, ' ', len < sizeof(digits) ? len : sizeof(digits));
        const char *equals;
        uint64_t n;

        if (!space)
            return false;
        memcpy(digits, text, (size_t)(space - text));
        if (parse_u64("length", digits, 1, len, &n, NULL) < 0 || text[n - 1] != '\n' ||
            (size_t)(space - text) + 2 > n)
            return false;
        equals = memchr(space, '=', n - (size_t)(space - text));
        if (!equals)
            return false;
        size_t key = (size_t)(equals - space - 1), value = n - (size_t)(equals + 1 - text) - 1;
        if (key == 4 && memcmp(space + 1, "path", key) == 0)
            keep(equals + 1, value, said->name, &said->has_name);
        else if (key == 8 && memcmp(space + 1, "linkpath", key) == 0)
            keep(equals + 1, value, said->link, &said->has_link);
        else if (key == 4 && memcmp(space + 1, "size", key) == 0) {
            char size[24] = "";

            if (value >= sizeof(size))
                return false;
            memcpy(size, equals + 1, value);
            if (parse_u64("size", size, 0, INT64_MAX, &said->size, NULL) < 0)
                return false;
            said->has_size = true;
        }
        text += n;
        len -= n;
    }
    return true;
}

/* Reads the contents of such a header. False: it is broken. */
static bool take_said(const struct tar *t, char type, uint64_t offset, uint64_t size,
                      struct said *said)
{
    AUTO(free_p) char *text = NULL;

    if (type == 'g')
        return true;
    if (size > PAX_MAX || !(text = malloc(size + 1)) ||
        pread(t->fd, text, size, (off_t)offset) != (ssize_t)size)
        return false;
    text[size] = '\0';
    if (type == 'L')
        keep(text, strlen(text), said->name, &said->has_name);
    else if (type == 'K')
        keep(text, strlen(text), said->link, &said->has_link);
    else
        return take_pax(text, size, said);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_zero(const struct header *h)
{
    static const char zero[BLOCK];

    return memcmp(h, zero, BLOCK) == 0;
}

static int broken(const struct tar *t, uint64_t at, struct sg_error *e)
{
    if (t->n == 0)
        return fault_corrupt(e, "it is no tar archive");
    return fault_corrupt(e, "the archive is broken at byte %llu", (unsigned long long)at);
}

/* Takes what is at `at`, and moves that on to the next header. */
static int read_entry(struct tar *t, const struct header *h, struct said *said, uint64_t *at,
                      struct sg_error *e)
{
    bool about = h->type == 'x' || h->type == 'g' || h->type == 'L' || h->type == 'K';
    bool bare = h->type == '1' || h->type == '2' || h->type == '5';
    uint64_t begin = *at + BLOCK, size;
    int r = 0;

    if (!checksum_right(h) || !number(h->size, sizeof(h->size), &size))
        return broken(t, *at, e);
    if (++t->n > ENTRIES_MAX)
        return fault_limit(e, "the archive has more than %d files", ENTRIES_MAX);
    if (!about && said->has_size)
        size = said->size;
    size = bare ? 0 : size;
    if (size > t->size - begin)
        return fault_corrupt(e, "the archive ends inside of a file");
    if (about && !take_said(t, h->type, begin, size, said))
        return broken(t, *at, e);
    if (!about) {
        r = take_entry(t, h, said, begin, size, e);
        *said = (struct said){0};
    }
    *at = begin + (size + BLOCK - 1) / BLOCK * BLOCK;
    return r;
}

static int read_entries(struct tar *t, struct sg_error *e)
{
    struct said said = {0};
    struct header h;
    uint64_t at = 0;
    int r = 0;

    while (r == 0 && pread(t->fd, &h, sizeof(h), (off_t)at) == BLOCK && !is_zero(&h))
        r = read_entry(t, &h, &said, &at, e);
    return r < 0 || t->n ? r : broken(t, 0, e);
}

int tar_open(struct tar *t, int fd, struct sg_error *e)
{
    struct stat st;
    int r;

    *t = (struct tar){.fd = fd};
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fault_invalid(e, "the archive must be a file: write it to one first");
    t->size = (uint64_t)st.st_size;
    r = read_entries(t, e);
    if (r < 0)
        tar_done(t);
    return r;
}

void tar_done(struct tar *t)
{
    MAP_EACH(struct entry, x, &t->entries, by_name) {
        map_remove(&t->entries, &x->by_name);
        free(x->link);
        free(x);
    }
    t->n = 0;
}

bool tar_find(const struct tar *t, const char *name, uint64_t *ret_offset, uint64_t *ret_size)
{
    const struct entry *x = find(t, name);

    if (x && x->link)
        x = find(t, x->link);
    if (!x || x->link)
        return false;
    *ret_offset = x->offset;
    *ret_size = x->size;
    return true;
}
