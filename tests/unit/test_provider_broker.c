/* What the provider makes of a broker's replies: a broker may have been taken over. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/ipc/ipc.h"
#include "inside/broker/twin.h"
#include "warden/providers/process/process_impl.h"
#include "tap.h"

struct bed {
    int broker;
    struct provider p; /* last: its slots have no number here */
};

static struct bed bed_open(void)
{
    struct bed b = {0};
    int s[2];

    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) == 0);
    b.p.domain.broker_sock = s[0];
    b.broker = s[1];
    return b;
}

static void bed_close(struct bed *b)
{
    close(b->p.domain.broker_sock);
    close(b->broker);
}

static int memfd_of(size_t size)
{
    int fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    EXPECT(ftruncate(fd, (off_t)size) == 0);
    return fd;
}

/* The kind of news that a reply with these descriptors makes. Closes them. */
static enum kernel_news_kind told(struct bed *b, uint32_t op, int first, int second)
{
    struct twin_reply reply = {.magic = TWIN_MAGIC, .op = op};
    int fds[] = {first, second};
    struct kernel_news news;
    struct sg_error e = {0};

    EXPECT(ipc_send(b->broker, &reply, sizeof(reply), fds, second < 0 ? 1 : 2) == 0);
    close_p(&first);
    close_p(&second);
    process_kernels.take(&b->p, &news, &e);
    close_p(&news.report);
    close_p(&news.written);
    return news.kind;
}

TEST(what_kernels_write_to_comes_in_a_memfd_or_the_broker_is_gone)
{
    AUTO(bed_close) struct bed b = bed_open();

    EXPECT(told(&b, TWIN_STILL, memfd_of(10), -1) == NEWS_STILL);
    EXPECT(told(&b, TWIN_STILL, memfd_of(TWIN_WRITTEN_MAX + 1), -1) == NEWS_GONE);
    EXPECT(told(&b, TWIN_STILL, eventfd(0, EFD_CLOEXEC), -1) == NEWS_GONE);
    EXPECT(told(&b, TWIN_STILL, open("/dev/zero", O_RDONLY), -1) == NEWS_GONE);
    EXPECT(told(&b, TWIN_HOLD, memfd_of(10), memfd_of(10)) == NEWS_HELD);
    EXPECT(told(&b, TWIN_HOLD, eventfd(0, EFD_CLOEXEC), memfd_of(10)) == NEWS_GONE);
    EXPECT(told(&b, TWIN_HOLD, memfd_of(10), eventfd(0, EFD_CLOEXEC)) == NEWS_GONE);
}

TEST(a_reply_that_is_none_is_the_brokers_end)
{
    AUTO(bed_close) struct bed b = bed_open();
    struct kernel_news news;
    struct sg_error e = {0};

    EXPECT(ipc_send(b.broker, "nonsense", 8, NULL, 0) == 0);
    process_kernels.take(&b.p, &news, &e);
    EXPECT(news.kind == NEWS_GONE);
}

TAP_MAIN
