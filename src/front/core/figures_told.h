/* Figures of the warden and the guard, for front/core/figures.c. */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* Asks the warden and the guard for their figures, except one that has not answered the last
 * question yet. `told` is called after each answer, perhaps before this returns. */
void figures_told_ask(struct front *f, void (*told)(void));
/* Whether both have answered. */
bool figures_told_all(void);
/* The time for answers is over: forgets the old figures of a process that has not answered. */
void figures_told_close(void);
/* Sets the figures of one process. process: a string literal. */
void figures_set_process(const char *process, const struct order_process *p);
