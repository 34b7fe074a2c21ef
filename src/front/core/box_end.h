/* How a sandbox has ended, for those who had calls under way in it and those who come later. */
#pragma once

#include "wire/ends.h"

#define BOX_END_DETAIL 128

struct box_end {
    uint32_t why; /* enum order_end; 0: it has not ended, or nobody told */
    char detail[BOX_END_DETAIL];
};

struct box;
struct order_answer;

/* As the warden tells it. */
void box_end_told(struct box_end *end, const struct order_answer *a);
/* Its user neither asked for it nor had to expect it: he is told why. */
bool box_end_is_news(const struct box_end *end);
const char *box_end_text(const struct box_end *end);
/* For a call whose sandbox was there and is not any more (CALL_GONE): what became of it, and by its
 * kind whose doing that was. */
int box_gone_error(const struct box *b, struct sg_error *e);
