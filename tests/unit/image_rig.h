/* Tars, lists and images in memory, for the tests of sandglass-image. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "image/image.h"
#include "image/records.h"
#include "lib/base/hash.h"
#include "lib/base/fd.h"
#include "lib/text/strbuf.h"
#include "tap.h"

#define PACK_MAX (64u << 20)

static inline int file_of(const void *data, size_t len)
{
    int fd = memfd_create("image", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    return fd;
}

static inline int file_empty(void)
{
    return file_of("", 0);
}

static inline size_t file_size(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 ? (size_t)st.st_size : 0;
}

/* The contents; to be freed. */
static inline uint8_t *file_bytes(int fd, size_t *ret_len)
{
    char *data;

    if (lseek(fd, 0, SEEK_SET) < 0 || fd_read_all(fd, PACK_MAX, &data, ret_len) < 0)
        abort();
    return (uint8_t *)data;
}

/* ---- tars ------------------------------------------------------------------------------------ */

static inline void pack_pad(struct strbuf *out)
{
    static const char zero[512];

    strbuf_add(out, zero, -out->len % 512);
}

static inline void pack_sum(char header[512])
{
    unsigned sum = 0;

    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
}

/* A header whose name, link and size are as they are given, and right otherwise. */
static inline void pack_header(char header[512], char type, const char *name, const char *link,
                               size_t size)
{
    memset(header, 0, 512);
    memcpy(header, name, strnlen(name, 100));
    snprintf(header + 100, 8, "%07o", 0640);
    snprintf(header + 108, 8, "%07o", 1000);
    snprintf(header + 116, 8, "%07o", 100);
    snprintf(header + 124, 12, "%011o", (unsigned)size);
    snprintf(header + 136, 12, "%011o", 1234567);
    header[156] = type;
    memcpy(header + 157, link, strnlen(link, 100));
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    pack_sum(header);
}

static inline void pack_add(struct strbuf *out, char type, const char *name, const char *link,
                            const char *data)
{
    char header[512];

    pack_header(header, type, name, link, strlen(data));
    strbuf_add(out, header, 512);
    strbuf_add(out, data, strlen(data));
    pack_pad(out);
}

/* A pax header of one record. */
static inline void pack_pax(struct strbuf *out, char type, const char *key, const char *value)
{
    AUTO(strbuf_done) struct strbuf record = strbuf_upto(PACK_MAX);
    size_t body = strlen(key) + strlen(value) + 3, n = body + 1;

    while (n != body + (size_t)snprintf(NULL, 0, "%zu", n))
        n++;
    strbuf_addf(&record, "%zu %s=%s\n", n, key, value);
    pack_add(out, type, "PaxHeader", "", record.buf);
}

static inline void pack_end(struct strbuf *out)
{
    static const char zero[1024];

    strbuf_add(out, zero, sizeof(zero));
}

/* ---- unpacking ------------------------------------------------------------------------------- */

struct unpacked {
    int blob, list, r;
    struct image_report report;
    struct sg_error e;
};

static inline void unpacked_done(struct unpacked *u)
{
    close(u->blob);
    close(u->list);
}

static inline struct unpacked unpack_with(const void *data, size_t len,
                                          const struct image_limits *limits)
{
    struct unpacked u = {.blob = file_empty(), .list = file_empty()};
    AUTO(close_p) int layer = file_of(data, len);

    u.r = image_unpack(layer, u.blob, u.list, limits, &u.report, &u.e);
    return u;
}

static inline struct unpacked unpack(const void *data, size_t len)
{
    static const struct image_limits limits = IMAGE_LIMITS;

    return unpack_with(data, len, &limits);
}

/* A list as text, an entry a line: kind, mode, owner, size, path, target. */
static inline char *list_text(int list, uint64_t blocks, char *buf, size_t cap)
{
    AUTO(records_close_p) struct records *l = NULL;
    struct record_entry e;
    struct sg_error why = {0};
    size_t n = 0;
    int r = records_open(list, blocks, &l, &why);

    buf[0] = '\0';
    while (r >= 0 && (r = records_next(l, &e, &why)) > 0 && n < cap)
        n += (size_t)snprintf(buf + n, cap - n, "%c %o %u:%u %llu %s%s%s\n", " fdlhpwo"[e.r.kind],
                              e.r.mode, e.r.uid, e.r.gid, (unsigned long long)e.r.size, e.path,
                              e.r.target_len ? " " : "", e.target);
    if (r < 0)
        snprintf(buf, cap, "! %s", why.message);
    return buf;
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define RIG_BLOCKS 8 /* of each list's blob */

/* A list of entries in words, one a line: "d PATH", "f PATH", "l PATH TARGET", "h PATH TARGET", "p PATH", "w PATH", "o PATH".
 * "/" is the root. */
static inline int list_of(const char *text)
{
    struct sink s;
    uint8_t sum[IMAGE_DIGEST] = {1, 2, 3};
    uint64_t n = 0;
    int fd = file_empty();

    sink_init(&s, fd);
    records_begin(&s);
    for (const char *p = text; *p; p += *p == '\n') {
        static const char kinds[] = " fdlhpwo";
        char line[6000], path[5000] = "", target[5000] = "", kind;
        size_t len = strcspn(p, "\n");

        snprintf(line, sizeof(line), "%.*s", (int)len, p);
        if (sscanf(line, "%c %4999s %4999s", &kind, path, target) < 2)
            abort();
        p += len;
        struct record_entry e = {.path = strcmp(path, "/") == 0 ? "" : path, .target = target};
        e.r.kind = (uint8_t)(strchr(kinds, kind) - kinds);
        bool owned = strchr("fdlp", kind) != NULL;
        e.r.mode = kind == 'l' ? 0777 : owned ? 0700 : 0;
        e.r.size = kind == 'f' ? 5000 : 0;
        if (kind == 'f')
            target[0] = '\0';
        e.r.path_len = (uint16_t)strlen(e.path);
        e.r.target_len = (uint16_t)strlen(target);
        records_add(&s, &e);
        n++;
    }
    records_finish(&s, n, RIG_BLOCKS, sum);
    EXPECT(sink_end(&s, "list", sum, NULL) == 0);
    sink_done(&s);
    return fd;
}
