/* Reports to the store what sandboxes have used (front/core/usage.h): for living ones every 10
 * seconds, for one that has ended within a second. While the store does not accept it, the usage is
 * kept and reported again. */
#pragma once

struct front;

/* The store must be open (contexts_store). */
void usage_start(struct front *f);
/* The front is about to end: reports all usage, then calls done, even if the store does not accept
 * it. */
void usage_finish(struct front *f, void (*done)(void *arg), void *arg);
