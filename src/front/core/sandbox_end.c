#include "front/core/sandbox_end.h"

#include <stdio.h>

#include "front/core/sandbox.h"
#include "lib/text/parse.h"
#include "wire/warden.h"

void sandbox_end_told(struct sandbox_end *end, const struct order_answer *a)
{
    end->why = a->end > 0 && a->end < END_MAX_ ? a->end : END_FAILED;
    snprintf(end->detail, sizeof(end->detail), "%.*s", SANDBOX_END_DETAIL - 1, a->message);
}

bool sandbox_end_is_news(const struct sandbox_end *end)
{
    return end->why != 0 && !end_kind(end->why)->wanted;
}

const char *sandbox_end_text(const struct sandbox_end *end)
{
    return end_text(end->why, end->detail);
}

char *memory_limit_text(uint64_t limit, uint32_t exit_status, char buf[MEMORY_LIMIT_TEXT])
{
    char shell[48] = "", size[32];

    if (exit_status)
        snprintf(shell, sizeof(shell), "exit status %u: a program was ", exit_status & 255);
    snprintf(buf, MEMORY_LIMIT_TEXT, "%skilled: the sandbox reached its memory limit of %s", shell,
             format_size(limit, size, sizeof(size)));
    return buf;
}

int sandbox_gone_error(const struct sandbox *b, struct sg_error *e)
{
    const struct sandbox_end *end = &b->end;

    if (!sandbox_end_is_news(end))
        return err_set(e, SG_ERR_GONE, -EPIPE, "the sandbox is not running any more");
    if (end_kind(end->why)->fault != FAULT_INFRASTRUCTURE)
        return err_set(e, SG_ERR_GONE, -EPIPE, "the sandbox has ended: %s", sandbox_end_text(end));
    return err_set(e, SG_ERR_INTERNAL, -ESHUTDOWN, "the sandbox has ended: %s",
                   sandbox_end_text(end));
}
