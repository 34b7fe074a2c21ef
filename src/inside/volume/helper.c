/* The first process of a helper. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inside/volume/volume.h"
#include "lib/ipc/ipc.h"

#define HELPER_IDLE_MS 10000
#define CHILD_S        3600 /* the longest that one request may take */

struct helper {
    int root;
    unsigned n_children;
    bool closing; /* the warden can send nothing more */
    struct volume_size *size;
};

static void on_child(int signo UNUSED)
{
    /* it only wakes poll */
}

static void reap(struct helper *h)
{
    while (h->n_children > 0 && waitpid(-1, NULL, WNOHANG) > 0)
        h->n_children--;
}

static void serve_in_child(struct helper *h, int sock)
{
    pid_t pid = h->n_children < VOLUME_STREAMS_MAX ? fork() : -1;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(CHILD_S);
        close(VOLUME_FD);
        if (volume_confine_child() == 0)
            volume_serve(sock, h->root, h->size);
        _exit(0);
    }
    h->n_children += pid > 0;
}

/* Receives a descriptor. 0: there is none now; -EPIPE: none will come. */
static int take_fd(int *ret)
{
    AUTO(ipc_fds_close) struct ipc_fds fds = {.max = 1};
    struct volume_message m;
    ssize_t n = ipc_take(VOLUME_FD, VOLUME_MAGIC, &m, sizeof(m), sizeof(m), &fds);

    if (n == -EAGAIN)
        return 0;
    if (n != (ssize_t)sizeof(m) || fds.n != 1)
        return -EPIPE;
    *ret = steal_fd(&fds.at[0]);
    return 1;
}

/* False: the helper ends. Before it ends for want of work it closes the way in, so that the warden
 * notices and starts another, and takes what was sent until then. */
static bool turn(struct helper *h)
{
    struct pollfd p = {.fd = VOLUME_FD, .events = POLLIN};
    int n = poll(&p, 1, HELPER_IDLE_MS), r, sock;

    reap(h);
    if (n == 0 && h->n_children == 0) {
        shutdown(VOLUME_FD, SHUT_RD);
        h->closing = true;
    }
    while ((r = take_fd(&sock)) > 0) {
        serve_in_child(h, sock);
        close(sock);
    }
    return r == 0 && !h->closing;
}

static int prepare(struct helper *h)
{
    struct sigaction wake = {.sa_handler = on_child};
    int flags = fcntl(VOLUME_FD, F_GETFL);

    h->size =
        mmap(NULL, sizeof(*h->size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (h->size == MAP_FAILED || flags < 0)
        return -errno;
    sigaction(SIGCHLD, &wake, NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(0);
    if (take_fd(&h->root) <= 0 || fcntl(VOLUME_FD, F_SETFL, flags | O_NONBLOCK) < 0)
        return -EPIPE;
    return 0;
}

int volume_main(void)
{
    struct helper h = {.root = -1};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sg-volume");
    /* No group of a sandbox limits what it does, and the warden and the front are beside it. */
    setpriority(PRIO_PROCESS, 0, 10);
    if (prepare(&h) < 0 || volume_confine(h.root, NULL) < 0)
        return 1;
    while (turn(&h))
        ;
    while (h.n_children > 0 && (waitpid(-1, NULL, 0) > 0 || errno == EINTR))
        h.n_children--;
    return 0;
}
