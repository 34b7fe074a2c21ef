/* sandglass-pull: fetches one image and hands its layers on. It is a program of its own because it
 * reads what registries all over the world send, with libraries that are large.
 *
 *   0  the request (request.h)          3  the directory that layers go into (store.h)
 *   1  what it says (report.h)          4  a layout or an archive, if the request names one
 *
 * Exit status: 0 result, 1 error, 2 not started as above. SIGTERM and SIGINT cancel. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"
#include "lib/base/filter.h"
#include "pull/fault.h"
#include "pull/image.h"
#include "pull/layout.h"
#include "pull/registry.h"
#include "pull/request.h"

#define DIRECTORY_FD    3
#define SOURCE_FD       4
#define REQUEST_MAX     (2u << 20)
#define DESCRIPTORS_MAX 64
#define MEMORY_MAX      (512u << 20) /* it uses 40 MiB */

static volatile sig_atomic_t stopped;

static void on_stop(int signo UNUSED)
{
    stopped = 1;
}

/* Names have to be resolved, and certificates checked: for that files are read, and the kernel is
 * asked for its addresses. */
static int confine(struct sg_error *e)
{
    static const int refused[] = {SYS_bind,  SYS_listen, SYS_accept,   SYS_accept4, SYS_kill,
                                  SYS_tkill, SYS_linkat, SYS_fchmodat, SYS_fchownat};
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
    static const struct {
        int what;
        struct rlimit limit;
    } limits[] = {
        {RLIMIT_CORE, {0, 0}},
        {RLIMIT_DATA, {MEMORY_MAX, MEMORY_MAX}},
        {RLIMIT_NOFILE, {DESCRIPTORS_MAX, DESCRIPTORS_MAX}},
        {RLIMIT_MEMLOCK, {0, 0}},
        {RLIMIT_MSGQUEUE, {0, 0}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (setrlimit(limits[i].what, &limits[i].limit) < 0)
            return err_errno(e, "limit this process");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_errno(e, "keep debuggers away");
    return filter_load(&(struct filter){.refused = refused,
                                        .n_refused = ARRAY_SIZE(refused),
                                        .families = families,
                                        .n_families = ARRAY_SIZE(families)},
                       "puller", e);
}

/* No file becomes longer than a layer may be. */
static int limit_files(const struct request *q, struct sg_error *e)
{
    struct rlimit most = {q->limits.layer_bytes, q->limits.layer_bytes};

    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &most) < 0 ? err_errno(e, "limit the size of files") : 0;
}

static int read_request(struct request *q, struct sg_error *e)
{
    char *text = NULL;
    size_t len = 0;
    int r = fd_read_all(STDIN_FILENO, REQUEST_MAX, &text, &len);

    if (r < 0)
        return r == -EFBIG ? fault_invalid(e, "request: it has more than %u MiB", REQUEST_MAX >> 20)
                           : err_code(e, r, "read the request");
    r = request_parse(text, len, q, e);
    explicit_bzero(text, len);
    free(text);
    return r < 0 ? r : limit_files(q, e);
}

static int pull_registry(const struct request *q, const struct deadline *d, struct store *store,
                         struct sg_error *e)
{
    AUTO(http_done) struct http http = {0};
    AUTO(registry_done) struct registry registry = {0};
    int r = http_init(&http, q, d, e);

    if (r == 0)
        r = registry_init(&registry, &http, e);
    return r < 0 ? r : image_pull(&registry.source, q, store, e);
}

static int pull_layout(const struct request *q, const struct deadline *d, struct store *store,
                       struct sg_error *e)
{
    AUTO(layout_done) struct layout layout = {0};
    int r = layout_init(&layout, SOURCE_FD, q, d, e);

    return r < 0 ? r : image_pull(&layout.source, q, store, e);
}

static int pull(struct sg_error *e)
{
    AUTO(request_done) struct request q = {0};
    struct deadline d;
    struct store store;
    int r = confine(e);

    if (r == 0)
        r = read_request(&q, e);
    if (r < 0)
        return r;
    d = deadline_in(q.limits.seconds, &stopped);
    store_init(&store, DIRECTORY_FD, q.sync);
    r = q.from == REQUEST_REGISTRY ? pull_registry(&q, &d, &store, e)
                                   : pull_layout(&q, &d, &store, e);
    store_done(&store, r == 0);
    return r;
}

int main(void)
{
    const struct sigaction stop = {.sa_handler = on_stop};
    struct sg_error e = {0};
    struct stat st;

    if (fstat(DIRECTORY_FD, &st) < 0 || !S_ISDIR(st.st_mode)) {
        fprintf(stderr,
                "sandglass-pull: this program is started by 'sandglass serve', not by hand\n");
        return 2;
    }
    fcntl(DIRECTORY_FD, F_SETFD, FD_CLOEXEC);
    fcntl(SOURCE_FD, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    umask(077);
    if (pull(&e) == 0)
        return 0;
    report_error(&e);
    return 1;
}
