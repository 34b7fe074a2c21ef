/* Layers are merged in the background, so that a sandbox that is frozen again and again does not
 * get deeper and deeper: SQUASH_AT layers set it off, and an overlay never has more than STACK_MAX.
 *
 * Neighbours that every stack has in common, or none, are one run: nobody needs them apart. A run
 * on one scratch is merged by a child (warden/layers/layer_stack_merge.h), by hard links, into a
 * new directory; then every stack that has the run gets that one in its place. What is mounted
 * keeps the old ones until its root is made anew. */
#pragma once

struct sandbox;
struct server;

/* After one of its moments was made or forgotten. */
void squash_consider(struct server *s, struct sandbox *g);
