/* Host names that name a port of a sandbox, and those that only look so. */
#include <string.h>

#include "lib/base/ids.h"
#include "front/main/dispatch.h"
#include "tap.h"

#define ID "abcdefghij0123456789"

static const struct {
    const char *host, *domain;
    unsigned port; /* 0: it names none */
} cases[] = {
    {"3000-" ID ".box.test", "box.test", 3000},
    {"3000-" ID ".box.test:8443", "box.test:8443", 3000},
    {"3000-" ID ".box.test:8443", "box.test", 3000},
    {"65535-" ID ".box.test", "box.test", 65535},
    {"3000-" ID "-client.box.test", "box.test", 3000},
    {"65536-" ID ".box.test", "box.test", 0},
    {"0-" ID ".box.test", "box.test", 0},
    {"-" ID ".box.test", "box.test", 0},
    {"+3000-" ID ".box.test", "box.test", 0},
    {"3000-" ID "x.box.test", "box.test", 0},
    {"3000-"
     "ABCDEFGHIJ0123456789"
     ".box.test",
     "box.test", 0},
    {"3000-short.box.test", "box.test", 0},
    {"3000-" ID ".box.test.evil", "box.test", 0},
    {"3000-" ID ".evil", "box.test", 0},
    {"3000-" ID "", "box.test", 0},
    {"3000-" ID ".", "", 0},
    {"3000-" ID ".x", "", 0},
    {"api.box.test", "box.test", 0},
    {"127.0.0.1:3000", "box.test", 0},
    {"", "box.test", 0},
};

TEST(hosts)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        unsigned port = 0;
        char id[ID_LEN + 1] = "";
        bool found = dispatch_parse_host(cases[i].host, cases[i].domain, &port, id);

        EXPECT(found == (cases[i].port != 0));
        EXPECT(port == cases[i].port || !found);
        if (found)
            EXPECT_STR(id, ID);
    }
}

TAP_MAIN
