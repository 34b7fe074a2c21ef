#include "lib/http/impl.h"
#include "tap.h"

TEST(connections_by_address)
{
    struct map peers = {0};
    struct in6_addr a = {.s6_addr = {0x20, 1, [7] = 1, [15] = 1}}, same = a, other = a;
    struct in6_addr v4 = {.s6_addr = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}}, v4b = v4;
    struct in6_addr loop4 = {.s6_addr = {[10] = 0xff, [11] = 0xff, 127, 0, 0, 9}};

    same.s6_addr[15] = 9;
    other.s6_addr[7] = 2;
    v4b.s6_addr[15] = 2;
    EXPECT(peers_enter(&peers, &a, 2) && peers_enter(&peers, &same, 2));
    EXPECT(!peers_enter(&peers, &a, 2) && !peers_enter(&peers, &same, 2));
    EXPECT(peers_enter(&peers, &other, 2));
    EXPECT(peers_enter(&peers, &v4, 1) && !peers_enter(&peers, &v4, 1));
    EXPECT(peers_enter(&peers, &v4b, 1));
    for (unsigned i = 0; i < 100; i++)
        EXPECT(peers_enter(&peers, &loop4, 1) && peers_enter(&peers, &in6addr_loopback, 1));
    peers_leave(&peers, &a);
    EXPECT(peers_enter(&peers, &a, 2));
    peers_leave(&peers, &v4);
    EXPECT(peers_enter(&peers, &v4, 1));
    peers_leave(&peers, &loop4);
    EXPECT(peers.n == 4);
    for (unsigned i = 0; i < 2; i++)
        peers_leave(&peers, &a);
    peers_leave(&peers, &other);
    peers_leave(&peers, &v4);
    peers_leave(&peers, &v4b);
    EXPECT(peers.n == 0);
}

TAP_MAIN
