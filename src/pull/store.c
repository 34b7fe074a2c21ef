#include "pull/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "pull/fault.h"

#define PART_NAME_MAX (DIGEST_TEXT_MAX + sizeof(".part"))

static void part_name(const struct digest *d, char ret[PART_NAME_MAX])
{
    snprintf(ret, PART_NAME_MAX, "%s.part", d->text);
}

void store_init(struct store *s, int dir, bool sync)
{
    *s = (struct store){.dir = dir, .sync = sync};
}

void store_done(struct store *s, bool keep)
{
    for (size_t i = 0; !keep && i < s->n_made; i++)
        unlinkat(s->dir, s->made[i].text, 0);
    free(s->made);
    *s = (struct store){.dir = -1};
}

bool store_made(const struct store *s, const struct digest *d)
{
    for (size_t i = 0; i < s->n_made; i++)
        if (digest_equal(&s->made[i], d))
            return true;
    return false;
}

int part_begin(struct store *s, const struct digest *d, uint64_t size, struct part *ret,
               struct sg_error *e)
{
    char name[PART_NAME_MAX];
    int fd;

    /* One of this name is what a process that was killed has left. */
    part_name(d, name);
    unlinkat(s->dir, name, 0);
    fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(e, "make the file of layer %s", d->text);
    *ret = (struct part){.store = s, .digest = *d, .size = size, .fd = fd};
    hasher_init(&ret->hasher, d);
    return 0;
}

int part_add(struct part *p, const void *data, size_t len, struct sg_error *e)
{
    int r;

    if (len > p->size - p->bytes)
        return fault_corrupt(e, "layer %s has more than the %llu bytes that its manifest says",
                             p->digest.text, (unsigned long long)p->size);
    r = fd_write_all(p->fd, data, len);
    if (r < 0)
        return err_code(e, r, "write layer %s", p->digest.text);
    hasher_add(&p->hasher, data, len);
    p->bytes += len;
    return 0;
}

int part_restart(struct part *p, struct sg_error *e)
{
    if (ftruncate(p->fd, 0) < 0 || lseek(p->fd, 0, SEEK_SET) < 0)
        return err_errno(e, "empty the file of layer %s", p->digest.text);
    hasher_reset(&p->hasher);
    p->bytes = 0;
    return 0;
}

static int check(struct part *p, struct sg_error *e)
{
    struct digest is;

    if (p->bytes != p->size)
        return fault_corrupt(e, "layer %s ends after %llu of %llu bytes", p->digest.text,
                             (unsigned long long)p->bytes, (unsigned long long)p->size);
    is = hasher_end(&p->hasher);
    if (!digest_equal(&is, &p->digest))
        return fault_corrupt(e, "layer %s has another content: its digest is %s", p->digest.text,
                             is.text);
    return 0;
}

int part_finish(struct part *p, struct sg_error *e)
{
    struct store *s = p->store;
    char name[PART_NAME_MAX];
    int r = check(p, e);

    if (r < 0)
        return r;
    part_name(&p->digest, name);
    if ((p->store->sync && fsync(p->fd) < 0) || renameat(s->dir, name, s->dir, p->digest.text) < 0)
        return err_errno(e, "save layer %s", p->digest.text);
    s->made = xgrow(s->made, s->n_made, &s->cap, sizeof(*s->made));
    s->made[s->n_made++] = p->digest;
    close_p(&p->fd);
    p->store = NULL;
    if (s->sync && fsync(s->dir) < 0)
        return err_errno(e, "save layer %s", p->digest.text);
    return 0;
}

void part_done(struct part *p)
{
    char name[PART_NAME_MAX];

    hasher_done(&p->hasher);
    if (!p->store)
        return;
    close_p(&p->fd);
    part_name(&p->digest, name);
    unlinkat(p->store->dir, name, 0);
    p->store = NULL;
}
