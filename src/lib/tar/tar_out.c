#include "lib/tar/tar_out.h"

#include <stdio.h>
#include <string.h>

#include "lib/text/strbuf.h"

#define BLOCK    512
#define OCTAL_7  ((1u << 21) - 1)   /* the most that seven octal digits hold */
#define OCTAL_11 ((1ull << 33) - 1) /* the most that eleven octal digits hold */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "as POSIX has it");

static void octal(char *field, size_t len, uint64_t v)
{
    char text[32];

    snprintf(text, sizeof(text), "%0*llo", (int)len - 1, (unsigned long long)v);
    memcpy(field, text, len);
}

static void sum_up(struct header *h)
{
    unsigned sum = 0;
    char text[8];

    memset(h->sum, ' ', sizeof(h->sum));
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)h)[i];
    snprintf(text, sizeof(text), "%06o", sum);
    memcpy(h->sum, text, 7); /* six digits and NUL; the space after them is there already */
}

static int put_header(const struct tar_out *t, const struct tar_out_entry *e)
{
    struct header h = {.magic = "ustar", .version = {'0', '0'}, .type = e->type};

    memcpy(h.name, e->name, strnlen(e->name, sizeof(h.name)));
    memcpy(h.link, e->link, strnlen(e->link, sizeof(h.link)));
    octal(h.mode, sizeof(h.mode), e->mode & 07777);
    octal(h.uid, sizeof(h.uid), e->uid <= OCTAL_7 ? e->uid : 0);
    octal(h.gid, sizeof(h.gid), e->gid <= OCTAL_7 ? e->gid : 0);
    octal(h.size, sizeof(h.size), e->size <= OCTAL_11 ? e->size : 0);
    octal(h.mtime, sizeof(h.mtime),
          e->mtime < 0 || (uint64_t)e->mtime > OCTAL_11 ? 0 : (uint64_t)e->mtime);
    sum_up(&h);
    return t->put(t->arg, &h, sizeof(h));
}

int tar_out_pad(const struct tar_out *t, uint64_t len)
{
    static const char zeros[BLOCK];
    size_t rest = (size_t)(len % BLOCK);

    return rest ? t->put(t->arg, zeros, BLOCK - rest) : 0;
}

/* "LENGTH key=value\n", where the length counts its own digits. */
static void pax_record(struct strbuf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
    char digits[24];

    while (len != rest + (size_t)snprintf(digits, sizeof(digits), "%zu", len))
        len++;
    strbuf_addf(out, "%s %s=%s\n", digits, key, value);
}

int tar_out_entry(const struct tar_out *t, const struct tar_out_entry *e)
{
    AUTO(strbuf_done) struct strbuf pax = strbuf_upto(3 * TAR_OUT_PATH_MAX);
    char digits[24];
    int r = 0;

    if (strlen(e->name) > sizeof((struct header *)0)->name)
        pax_record(&pax, "path", e->name);
    if (strlen(e->link) > sizeof((struct header *)0)->link)
        pax_record(&pax, "linkpath", e->link);
    snprintf(digits, sizeof(digits), "%llu", (unsigned long long)e->size);
    if (e->size > OCTAL_11)
        pax_record(&pax, "size", digits);
    if (pax.len > 0) {
        struct tar_out_entry x = {.name = "././@PaxHeader",
                                  .link = "",
                                  .type = 'x',
                                  .mode = e->mode,
                                  .mtime = e->mtime,
                                  .size = pax.len};

        r = put_header(t, &x);
        if (r == 0)
            r = t->put(t->arg, pax.buf, pax.len);
        if (r == 0)
            r = tar_out_pad(t, pax.len);
    }
    return r < 0 ? r : put_header(t, e);
}

int tar_out_end(const struct tar_out *t)
{
    static const char end[2 * BLOCK];

    return t->put(t->arg, end, sizeof(end));
}
