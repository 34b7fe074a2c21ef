/* What this process uses, for who counts that of all of a server's processes (ORDER_FIGURES,
 * ASK_FIGURES). Works behind every filter that we load: it reads /proc/self. */
#pragma once

#include "wire/warden.h"

/* What cannot be read is 0. */
void process_figures(struct order_process *ret);
