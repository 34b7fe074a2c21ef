#include "front/main/confine.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/filter.h"

int confine_front(struct sg_error *e)
{
    static const int refused[] = {SYS_bind, SYS_socket, SYS_connect};

    return filter_load(&(struct filter){.refused = refused, .n_refused = ARRAY_SIZE(refused)},
                       "front", e);
}

/* The database worker does nothing but talk to a database. */
int confine_dbworker(struct sg_error *e)
{
    static const int refused[] = {SYS_bind};

    return filter_load(&(struct filter){.refused = refused, .n_refused = ARRAY_SIZE(refused)},
                       "clerk", e);
}

/* The exporter dials out, and has to resolve names and check certificates: for that it reads files
 * and asks the kernel for its addresses. It never serves, and writes no file. */
int confine_exporter(struct sg_error *e)
{
    static const int refused[] = {SYS_bind, SYS_listen, SYS_accept, SYS_accept4};
    static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
    static const struct rlimit nothing = {0, 0};

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &nothing) < 0)
        return err_errno(e, "limit the herald's files");
    return filter_load(&(struct filter){.refused = refused,
                                        .n_refused = ARRAY_SIZE(refused),
                                        .families = families,
                                        .n_families = ARRAY_SIZE(families)},
                       "herald", e);
}
