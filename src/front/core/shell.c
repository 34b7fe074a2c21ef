#include "front/core/shell.h"

#include <stdio.h>

#include "front/core/identity.h"
#include "lib/base/signame.h"
#include "lib/channel/wire.h"

int shell_begin(struct call *c, struct sandbox *b, const struct shell *s, struct sg_error *e)
{
    AUTO(strbuf_done) struct strbuf request = strbuf_upto(OPS_OPEN_MAX);

    wire_put_str(&request, s->user);
    wire_put_str(&request, s->cwd);
    wire_put_u32(&request, s->flags);
    wire_put_u32(&request, 0);
    wire_put_u32(&request, 0);
    wire_put_u64(&request, s->timeout_ms);
    wire_put_str(&request, "");
    wire_put_str(&request, "");
    wire_put_u32(&request, 4);
    wire_put_str(&request, "/bin/bash");
    wire_put_str(&request, "-l");
    wire_put_str(&request, "-c");
    wire_put_str(&request, s->command);
    identity_put_envs(b, NULL, s->envs, &request);
    return call_begin(c, b, OP_PROCESS_START, &request, e);
}

int shell_end_read(const void *result, size_t len, struct shell_end *ret)
{
    struct wire_reader r = wire_reader_of(result, len);
    uint32_t how = wire_get_u32(&r), code = wire_get_u32(&r);

    for (int i = 0; i < 4; i++) /* times, memory, disk */
        wire_get_u64(&r);
    wire_get_u32(&r);
    wire_get_u64(&r);
    wire_get_u64(&r);
    *ret = (struct shell_end){.timed_out = wire_get_u32(&r) != 0};
    uint64_t memory_limit = wire_get_u64(&r);
    if (!wire_done(&r))
        return -EPROTO;
    if (memory_limit)
        memory_limit_text(memory_limit, how == PROC_KILLED ? 0 : code, ret->text);
    else if (how == PROC_KILLED)
        snprintf(ret->text, sizeof(ret->text), "signal: SIG%s", signal_name((int)code));
    else if (code != 0)
        snprintf(ret->text, sizeof(ret->text), "exit status %u", code);
    return 0;
}

void shell_discard(struct call *c)
{
    for (uint32_t channel = CHAN_STDOUT; channel <= CHAN_STDERR; channel++) {
        AUTO(strbuf_done) struct strbuf which = strbuf_upto(16);

        wire_put_u32(&which, channel);
        call_control(c, CONTROL_DISCARD, which.buf, which.len);
    }
}
