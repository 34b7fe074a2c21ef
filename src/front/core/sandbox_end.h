/* How a sandbox has ended, for those who had calls under way in it and those who come later. */
#pragma once

#include "wire/ends.h"

#define SANDBOX_END_DETAIL 128

struct sandbox_end {
    uint32_t why; /* enum order_end; 0: it has not ended, or nobody told */
    char detail[SANDBOX_END_DETAIL];
};

struct sandbox;
struct order_answer;

/* As the warden tells it. */
void sandbox_end_told(struct sandbox_end *end, const struct order_answer *a);
/* Its user neither asked for it nor had to expect it: he is told why. */
bool sandbox_end_is_news(const struct sandbox_end *end);
const char *sandbox_end_text(const struct sandbox_end *end);
/* For a call whose sandbox was there and is not any more (CALL_GONE): what became of it, and by its
 * kind whose doing that was. */
int sandbox_gone_error(const struct sandbox *b, struct sg_error *e);
