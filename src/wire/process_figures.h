/* The CPU time, memory and descriptors that the calling process uses. Each process of a server
 * reports its own, for the server's metrics (ORDER_FIGURES, ASK_FIGURES). It reads /proc/self,
 * which every filter that we load allows. */
#pragma once

#include "wire/warden.h"

/* A figure that cannot be read is 0. */
void process_figures(struct order_process *ret);
