/* What a person who starts a server sees: where it is, and at the first start the key to use it. */
#pragma once

#include "front/front.h"

/* Makes the first tenant and key if there is none. listener: the first socket that is served. */
int banner_print(struct front *f, int listener, struct sg_error *e);
