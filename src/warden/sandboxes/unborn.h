/* A sandbox that is on its way before it is ordered (ORDER_SOON): while a moment is being made, one
 * of the pool becomes what the first order from it will want. What does not depend on each other is
 * done side by side:
 *
 *   the source:   still --> its root --> held --> go --------------> sealed, answered
 *   the unborn:        \--> taken, its root       \--> its kernel is copied --> ...
 *
 * ... until the order comes, from whoever was told that the moment is there: guest_create takes it
 * over however far it has come. Its kernel is kept back until then: what runs in it first, a hook
 * of the user's, is to find its network. */
#pragma once

#include "wire/warden.h"

struct moment;
struct ward;
struct instance;
struct unborn;

/* One of the ward's pool gets the moment's files. NULL if there is none to be had. */
struct unborn *unborn_begin(struct moment *m, struct ward *w, const struct sg_limits *limits);
/* Its kernels can be copied. only: this is the one sandbox that is made from the moment. */
void unborn_copy(struct unborn *u, bool only);
/* The sandbox, the caller's from now on, and whether its agent has its root already; the answer is
 * still to come otherwise. NULL if it is not of that ward, or has other limits, or has failed; it
 * is dropped then. u is gone. */
struct instance *unborn_take(struct unborn *u, const struct ward *w, const struct sg_limits *limits,
                             bool *ret_rooted);
/* NULL is allowed. */
void unborn_drop(struct unborn *u);
