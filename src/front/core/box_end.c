#include "front/core/box_end.h"

#include <stdio.h>

#include "front/core/box.h"
#include "wire/warden.h"

void box_end_told(struct box_end *end, const struct order_answer *a)
{
    end->why = a->end > 0 && a->end < END_MAX_ ? a->end : END_FAILED;
    snprintf(end->detail, sizeof end->detail, "%.*s", BOX_END_DETAIL - 1, a->message);
}

bool box_end_is_news(const struct box_end *end)
{
    return end->why != 0 && !end_kind(end->why)->wanted;
}

const char *box_end_text(const struct box_end *end)
{
    return end_text(end->why, end->detail);
}

int box_gone_error(const struct box *b, struct sg_error *e)
{
    const struct box_end *end = &b->end;

    if (!box_end_is_news(end))
        return err_set(e, SG_ERR_GONE, -EPIPE, "the sandbox is not running any more");
    if (end_kind(end->why)->layer != LAYER_INFRASTRUCTURE)
        return err_set(e, SG_ERR_GONE, -EPIPE, "the sandbox has ended: %s", box_end_text(end));
    return err_set(e, SG_ERR_INTERNAL, -ESHUTDOWN, "the sandbox has ended: %s", box_end_text(end));
}
