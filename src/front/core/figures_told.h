/* Figures that warden and guard tell, for front/core/figures.c. */
#pragma once

#include "front/core/front.h"
#include "wire/warden.h"

/* Asks those that do not owe an answer already; `told` comes with each answer, perhaps before this
 * returns. */
void figures_told_ask(struct front *f, void (*told)(void));
/* Nobody owes an answer. */
bool figures_told_all(void);
/* Nobody waits any longer: what those who owe an answer have told before is forgotten. */
void figures_told_close(void);
/* process: a literal. */
void figures_set_process(const char *process, const struct order_process *p);
