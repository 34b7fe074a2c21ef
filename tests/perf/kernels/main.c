/* Sandboxes with kernels as the server's pool has them, without the server: the provider alone.
 *
 *   kernels first N IMPORTS   the first cell of each, one after the other
 *   kernels hold N IMPORTS    they wait while another process counts, before and after a cell
 *
 * IMPORTS is what the zygote loads: "" for the standard library, or "science". Prints JSON lines.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "bench.h"
#include "lib/channel/wire.h"
#include "engine/sandbox.h"
#include "warden/host/cgroup_place.h"
#include "warden/host/limits.h"

#define ZYGOTE_MS 60000
#define CELL_NS   5000000000ull
#define REQUEST   4096u
#define SETTLE_US 300000 /* for the last kernels to become ready */
#define CELL      "1+1"
#define ANSWER    "2"

struct sandbox {
    struct instance *instance;
    struct chan *chan;
};

struct pool {
    struct provider *provider;
    struct instance *home; /* of the zygote */
    struct sandbox *sandboxes;
    long n;
};

static void must(int r, const char *what, const struct sg_error *e)
{
    if (r < 0)
        fail(what, e->message[0] ? e->message : strerror(-r));
}

static struct instance *make_sandbox(struct provider *p)
{
    struct sg_limits none = {0};
    struct instance_spec spec = {.hostname = "bench", .line = true, .twins = true};
    struct sg_error e = {0};
    struct instance *i;
    int r;

    must(limits_complete(&none, &spec.limits, &e), "limits", &e);
    must(OPS(p)->begin(p, &i, &e), "begin a sandbox", &e);
    must(OPS(i)->finish(i, &spec, &e), "finish a sandbox", &e);
    while ((r = OPS(i)->started(i, &e)) == -EAGAIN) {
        struct pollfd f = {.fd = OPS(i)->line(i), .events = POLLIN};
        poll(&f, 1, 1000);
    }
    must(r, "start a sandbox", &e);
    return i;
}

/* Waits for the next news of this kind, which must be good. */
static void await_news(struct provider *p, enum kernel_news_kind kind)
{
    struct kernel_news news = {.kind = NEWS_NONE};
    struct sg_error e = {0};

    while (news.kind != kind) {
        struct pollfd f = {.fd = OPS(p)->kernels->fd(p), .events = POLLIN};
        if (poll(&f, 1, ZYGOTE_MS) <= 0)
            fail("wait for kernels", "nothing comes");
        int r = OPS(p)->kernels->take(p, &news, &e);
        if (r != -EAGAIN)
            must(r, "make kernels", &e);
    }
}

static void pool_open(struct pool *pool, long n, const char *imports)
{
    struct sg_error e = {0};

    *pool = (struct pool){.n = n, .sandboxes = calloc((size_t)n, sizeof(pool->sandboxes[0]))};
    if (!pool->sandboxes)
        fail("pool", "out of memory");
    struct provider_setup setup = {
        .max_instances = (uint32_t)n + 2, .server = CGROUP_LOCAL, .tenant = CGROUP_RUNS};
    must(providers[0]->open(&setup, &pool->provider, &e), "open a provider", &e);
    pool->home = make_sandbox(pool->provider);
    must(OPS(pool->provider)->kernels->open(pool->provider, &e), "start the broker", &e);
    must(OPS(pool->provider)->kernels->zygote(pool->provider, pool->home, imports, false, &e),
         "zygote", &e);
    await_news(pool->provider, NEWS_ZYGOTE);
}

static void sandbox_fill(struct pool *pool, struct sandbox *b)
{
    struct sg_error e = {0};

    b->instance = make_sandbox(pool->provider);
    must(OPS(b->instance)->kernels->ask(b->instance, &e), "ask for a kernel", &e);
    await_news(pool->provider, NEWS_KERNEL);
}

static void sandbox_connect(struct sandbox *b)
{
    struct sg_error e = {0};
    int socks[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks) < 0)
        fail("connect", "no descriptor");
    must(OPS(b->instance)->connect(b->instance, socks[1], &e), "connect", &e);
    close(socks[1]);
    b->chan = session_open(socks[0]);
}

struct cell {
    struct call call;
    bool right;
};

static void on_data(struct call *call, uint8_t sub, const void *p, size_t len)
{
    struct cell *cell = CONTAINER_OF(call, struct cell, call);
    static const char text[] = "text\0" ANSWER;

    if (sub == CHAN_KERNEL && memmem(p, len, text, sizeof(text) - 1))
        cell->right = true;
}

static void sandbox_cell(struct sandbox *b)
{
    struct cell cell = {.call.on_data = on_data};
    struct sg_error e = {0};
    struct strbuf request;

    strbuf_init(&request, REQUEST);
    wire_put_str(&request, ""); /* the default context */
    wire_put_str(&request, "");
    wire_put_u64(&request, 0);
    wire_put_u32(&request, 0);
    wire_put_u32(&request, 0);
    chan_cork(b->chan);
    must(session_call_begin(b->chan, &cell.call, OP_KERNEL_EXECUTE, &request, &e), "cell", &e);
    chan_send(b->chan, cell.call.stream, CHAN_STDIN, CELL, sizeof(CELL) - 1);
    chan_eof(b->chan, cell.call.stream);
    chan_uncork(b->chan);
    must(session_wait(b->chan, &cell.call, clock_ns() + CELL_NS, &e), "cell", &e);
    must(session_call_error(&cell.call, &e), "cell", &e);
    if (!cell.right)
        fail("cell", "the answer is not " ANSWER);
    session_call_done(&cell.call);
    strbuf_done(&request);
}

static void pool_close(struct pool *pool)
{
    struct sg_error e = {0};

    for (long k = 0; k < pool->n; k++)
        chan_free(pool->sandboxes[k].chan);
    must(OPS(pool->provider)->close(pool->provider, &e), "close the provider", &e);
    free(pool->sandboxes);
}

static int verb_first(struct pool *pool)
{
    struct series first = {.name = "first cell"}, next = {.name = "next cell"};

    for (long k = 0; k < pool->n; k++)
        sandbox_fill(pool, &pool->sandboxes[k]);
    usleep(SETTLE_US);
    for (long k = 0; k < pool->n; k++) {
        double t0 = now_us();
        sandbox_connect(&pool->sandboxes[k]);
        sandbox_cell(&pool->sandboxes[k]);
        double t1 = now_us();
        sandbox_cell(&pool->sandboxes[k]);
        series_add(&first, t1 - t0);
        series_add(&next, now_us() - t1);
    }
    series_print(&first);
    series_print(&next);
    return 0;
}

static int verb_wait(struct pool *pool)
{
    checkpoint("empty"); /* one sandbox is there, and the zygote */
    for (long k = 0; k < pool->n; k++)
        sandbox_fill(pool, &pool->sandboxes[k]);
    checkpoint("full");
    for (long k = 0; k < pool->n; k++) {
        sandbox_connect(&pool->sandboxes[k]);
        sandbox_cell(&pool->sandboxes[k]);
    }
    checkpoint("used");
    return 0;
}

int main(int argc, char **argv)
{
    bool first = argc == 4 && strcmp(argv[1], "first") == 0;
    struct pool pool;

    if (!first && !(argc == 4 && strcmp(argv[1], "hold") == 0)) {
        fputs("usage: kernels first|hold N IMPORTS\n", stderr);
        return 2;
    }
    pool_open(&pool, parse_count(argv[2]), argv[3]);
    int status = first ? verb_first(&pool) : verb_wait(&pool);
    pool_close(&pool);
    return status;
}
