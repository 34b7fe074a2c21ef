/* Tells the store what sandboxes have used (front/core/usage.h): of living ones every 10 seconds,
 * of one that has ended within a second. While the store cannot take it, it is kept and tried
 * again. */
#pragma once

struct front;

/* There must be a store (contexts_store). */
void usage_start(struct front *f);
/* The front is about to end: tells what there is to tell, then calls done, also if the store does
 * not take it. */
void usage_finish(struct front *f, void (*done)(void *arg), void *arg);
