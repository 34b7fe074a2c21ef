/* Squashing: merges layers in the background, because each checkpoint adds a layer to its sandbox.
 * A stack of SQUASH_AT layers is merged; an overlay never has more than STACK_MAX.
 *
 * Layers that lie next to each other, and that every stack has either all or none of, form a run:
 * nobody needs them apart. A files worker merges a run that is on one scratch file system into a
 * new directory, by hard links (inside/files/layer_stack_merge.h). Then every stack that has the run
 * gets the new directory in its place. A sandbox that is mounted keeps the old layers until its
 * root is made anew. */
#pragma once

struct sandbox;
struct server;

/* Merges layers of the sandbox if it has too many. Call it after one of its checkpoints was made or
 * forgotten. */
void squash_consider(struct server *s, struct sandbox *g);
