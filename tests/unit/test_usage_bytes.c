#include "tap.h"

#include "front/core/identity.h"
#include "front_rig.h"

TAP_MAIN

static void no_route(struct rig *r, struct http_req *req)
{
    (void)r, (void)req;
}

TEST(bytes_and_programs_of_an_agent_are_counted)
{
    struct rig r;
    struct rig_program g;

    rig_start(&r, no_route);
    const struct ctx_usage *u = &r.sandbox->usage.total;
    identity_write(r.sandbox); /* the server's own */
    EXPECT(strlen(rig_says(&r, "head -c 50000 /dev/zero | tr '\\0' x")) == 50000);
    EXPECT(u->bytes_out == 50000);
    EXPECT(u->bytes_in == 0);
    EXPECT(u->executions == 1);
    rig_shell(&r, &g, "cat >/dev/null");
    call_send(&g.call, 0, "12345", 5);
    call_eof(&g.call);
    EXPECT(rig_wait(&r, &g.ended));
    rig_program_done(&r, &g);
    EXPECT(u->executions == 2);
    EXPECT(u->bytes_in == 5);
    rig_stop(&r);
}
