#include "warden/sandboxes/volume.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/share.h"
#include "lib/ipc/ipc.h"
#include "lib/log/log.h"
#include "warden/host/child.h"
#include "warden/layers/mounts.h"
#include "warden/processes/files_worker.h"
#include "warden/server.h"
#include "wire/volume.h"

#define OPEN_DIR    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define REMOVED     "removed-"
#define HELPERS_MAX 256
#define END_MS      1000
#define MODE        0777 /* any user of a sandbox may make files at the top, as in a shared disk */

/* Exists while it is used or has a helper. */
struct volume {
    struct list link;
    struct server *server;
    char tenant[ORDER_TENANT_LEN + 1], id[ID_LEN + 1];
    int dir;
    unsigned users, n_helpers;
    struct helper *helper; /* that takes connections; NULL: there is none */
};

struct helper {
    struct list link;
    struct volume *volume;
    int sock, pidfd;
    struct loop_source process;
};

static int no_volume(const char *id, struct sg_error *e)
{
    return err_set(e, SG_ERR_NOT_FOUND, -ENOENT, "there is no volume '%s'", id);
}

/* Without id maps, whoever is root in a sandbox would be root in the directory. */
static int check_can(const struct server *s, const char *tenant, const char *id, struct sg_error *e)
{
    if (!s->state.maps_ids || !s->provider->mount)
        return err_set(e, SG_ERR_UNSUPPORTED, -EOPNOTSUPP,
                       "volumes need a state directory on a file system with mapped ids: ext4, "
                       "xfs or btrfs");
    if (!id_valid(tenant) || !id_valid(id))
        return err_invalid(e, "the names of a tenant and of a volume are 20 letters and digits");
    return 0;
}

static int open_tenant(struct server *s, const char *tenant, struct sg_error *e)
{
    int fd;

    if (mkdirat(s->state.volumes, tenant, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "make '%s/volumes/%s'", s->state.path, tenant);
    fd = openat(s->state.volumes, tenant, OPEN_DIR);
    return fd < 0 ? err_errno(e, "open '%s/volumes/%s'", s->state.path, tenant) : fd;
}

int volume_make(struct server *s, const char *tenant, const char *id, struct sg_error *e)
{
    AUTO(close_p) int at = -1, dir = -1;
    int r = check_can(s, tenant, id, e);

    if (r == 0)
        r = at = open_tenant(s, tenant, e);
    if (r < 0)
        return r;
    /* Not synced: while sandboxes write to that disk, the warden would wait for them. */
    if (mkdirat(at, id, 0700) < 0 || (dir = openat(at, id, OPEN_DIR)) < 0 || fchmod(dir, MODE) < 0)
        return err_errno(e, "make a volume in '%s/volumes'", s->state.path);
    return 0;
}

/* ---- in use ---------------------------------------------------------------------------------- */

static struct volume *find(struct server *s, const char *tenant, const char *id)
{
    return LIST_FIND(struct volume, v, &s->volumes, link,
                     strcmp(v->id, id) == 0 && strcmp(v->tenant, tenant) == 0);
}

static void free_if_unused(struct volume *v)
{
    if (v->users > 0 || v->n_helpers > 0)
        return;
    list_remove(&v->link);
    close_p(&v->dir);
    free(v);
}

int volume_use(struct server *s, const char *tenant, const char *id, struct volume **ret,
               struct sg_error *e)
{
    char path[ORDER_TENANT_LEN + ID_LEN + 2];
    int r = check_can(s, tenant, id, e), dir;
    struct volume *v = r < 0 ? NULL : find(s, tenant, id);

    if (r < 0)
        return r;
    if (!v) {
        snprintf(path, sizeof(path), "%s/%s", tenant, id);
        dir = openat(s->state.volumes, path, OPEN_DIR);
        if (dir < 0)
            return errno == ENOENT ? no_volume(id, e) : err_errno(e, "open the volume '%s'", id);
        v = NEW(struct volume, .server = s, .dir = dir);
        memcpy(v->tenant, tenant, sizeof(v->tenant));
        memcpy(v->id, id, sizeof(v->id));
        list_push(&s->volumes, &v->link);
    }
    v->users++;
    *ret = v;
    return 0;
}

void volume_release(struct volume *v)
{
    v->users--;
    free_if_unused(v);
}

int volume_dir(const struct volume *v)
{
    return v->dir;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static void helper_free(struct helper *h)
{
    struct volume *v = h->volume;

    loop_unwatch(&v->server->loop, &h->process);
    close_p(&h->sock);
    list_remove(&h->link);
    if (v->helper == h)
        v->helper = NULL;
    free(h);
    v->server->n_volume_helpers--;
    v->n_helpers--;
    free_if_unused(v);
}

static void on_helper_ended(struct loop_source *src, uint32_t events UNUSED)
{
    struct helper *h = CONTAINER_OF(src, struct helper, process);

    child_reap(&h->pidfd, NULL);
    helper_free(h);
}

static int send_fd(const struct helper *h, int fd)
{
    struct volume_message m = {.magic = VOLUME_MAGIC};

    return ipc_send(h->sock, &m, sizeof(m), &fd, 1);
}

static size_t helpers_of(const struct server *s, const char *tenant)
{
    size_t n = 0;

    LIST_EACH(const struct helper, h, &s->volume_helpers, link)
        n += strcmp(h->volume->tenant, tenant) == 0;
    return n;
}

static int start_helper(struct volume *v, struct sg_error *e)
{
    struct server *s = v->server;
    AUTO(close_p) int tree = -1;
    int socks[2], pidfd = -1, r;

    if (!share_has_room(helpers_of(s, v->tenant), s->n_volume_helpers, HELPERS_MAX))
        return err_set(e, SG_ERR_LIMIT, -EAGAIN, "too many volumes are in use: try again");
    r = mounts_map_writable(v->dir, "a volume", s->files.ids, &tree, e);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks) < 0)
        return err_errno(e, "make a socket pair for a volume's helper");
    r = files_process_start(s, VOLUME_ROLE, s->files.ids, socks[0], socks[1], &pidfd, e);
    if (r < 0)
        return r;
    v->helper = NEW(struct helper, .volume = v, .sock = socks[0], .pidfd = pidfd,
                    .process = {.fd = -1, .fn = on_helper_ended});
    s->n_volume_helpers++;
    v->n_helpers++;
    list_push(&s->volume_helpers, &v->helper->link);
    loop_watch(&s->loop, &v->helper->process, pidfd, EPOLLIN);
    r = send_fd(v->helper, tree);
    return r < 0 ? err_code(e, r, "start a volume's helper") : 0;
}

/* A helper that ends for want of work takes no more connections: another is started. */
static int give_connection(struct volume *v, int theirs, struct sg_error *e)
{
    int r = v->helper ? send_fd(v->helper, theirs) : -EPIPE;

    if (r == -EPIPE || r == -ECONNRESET) {
        v->helper = NULL;
        r = start_helper(v, e);
        if (r < 0)
            return r;
        r = send_fd(v->helper, theirs);
    }
    return r < 0 ? err_set(e, SG_ERR_LIMIT, -EAGAIN,
                           "too many requests for the volume at once: try again")
                 : 0;
}

int volume_connect(struct server *s, const char *tenant, const char *id, int *ret_fd,
                   struct sg_error *e)
{
    struct volume *v;
    int socks[2], r = volume_use(s, tenant, id, &v, e);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0) {
        r = err_errno(e, "make a connection to a volume's helper");
        volume_release(v);
        return r;
    }
    r = give_connection(v, socks[1], e);
    close(socks[1]);
    if (r == 0)
        *ret_fd = socks[0];
    else
        close(socks[0]);
    volume_release(v);
    return r;
}

static void kill_helpers(struct server *s, const struct volume *v)
{
    LIST_EACH(struct helper, h, &s->volume_helpers, link)
        if (h->volume == v)
            child_kill(h->pidfd);
}

/* ---- removing -------------------------------------------------------------------------------- */

struct removal {
    struct server *server;
    char name[sizeof(REMOVED) + ID_LEN];
    int dir;
};

static void removal_free(struct removal *m)
{
    close_p(&m->dir);
    unlinkat(m->server->state.volumes, m->name, AT_REMOVEDIR);
    free(m);
}

static void on_removed(void *arg, const struct files_answer *a)
{
    struct removal *m = arg;

    if (a->code < 0)
        log_line(LEVEL_WARN, "files in '%s/volumes/%s' could not be removed: %s",
                 m->server->state.path, m->name, a->message);
    removal_free(m);
}

/* A worker sees nothing but what it is to remove. If it does not finish, the next start goes on. */
static void remove_files(struct server *s, const char *name)
{
    AUTO(free_p) struct files_order *o = xcalloc(1, sizeof(*o));
    struct removal *m = NEW(struct removal, .server = s);
    struct sg_error e = {0};

    snprintf(m->name, sizeof(m->name), "%s", name);
    m->dir = openat(s->state.volumes, name, OPEN_DIR);
    files_order_init(o, FILES_REMOVE);
    files_order_add(o, m->dir, 0, "v", false);
    if (m->dir >= 0 && files_worker_start(s, o, on_removed, m, &e))
        return;
    log_line(LEVEL_WARN, "'%s/volumes/%s' could not be removed: %s", s->state.path, name,
             e.message);
    removal_free(m);
}

int volume_remove(struct server *s, const char *tenant, const char *id, struct sg_error *e)
{
    char aside[ID_LEN + 1], name[sizeof(REMOVED) + ID_LEN], from[ORDER_TENANT_LEN + ID_LEN + 2];
    char to[sizeof(name) + 2];
    int r = check_can(s, tenant, id, e);
    struct volume *v = r < 0 ? NULL : find(s, tenant, id);

    if (r < 0)
        return r;
    if (v && v->users > 0)
        return err_set(e, SG_ERR_GONE, -EBUSY, "a sandbox has the volume");
    id_random(aside);
    snprintf(name, sizeof(name), REMOVED "%s", aside);
    snprintf(from, sizeof(from), "%s/%s", tenant, id);
    snprintf(to, sizeof(to), "%s/v", name);
    if (mkdirat(s->state.volumes, name, 0700) < 0)
        return err_errno(e, "make '%s/volumes/%s'", s->state.path, name);
    if (renameat(s->state.volumes, from, s->state.volumes, to) < 0) {
        r = errno == ENOENT ? no_volume(id, e) : err_errno(e, "remove the volume '%s'", id);
        unlinkat(s->state.volumes, name, AT_REMOVEDIR);
        return r;
    }
    if (v) {
        kill_helpers(s, v);
        v->id[0] = '\0'; /* until they have ended, nobody must find it */
    }
    remove_files(s, name);
    return 0;
}

/* ---- start and end --------------------------------------------------------------------------- */

int volumes_load(struct server *s, struct sg_error *e)
{
    int fd = openat(s->state.volumes, ".", OPEN_DIR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        close_p(&fd);
        return err_errno(e, "list '%s/volumes'", s->state.path);
    }
    while ((entry = readdir(d)) != NULL)
        if (strncmp(entry->d_name, REMOVED, strlen(REMOVED)) == 0 &&
            id_valid(entry->d_name + strlen(REMOVED)))
            remove_files(s, entry->d_name);
    closedir(d);
    return 0;
}

void volumes_close(struct server *s)
{
    LIST_EACH(struct helper, h, &s->volume_helpers, link) {
        child_end(&h->pidfd, END_MS, NULL);
        close_p(&h->pidfd);
        helper_free(h);
    }
}
