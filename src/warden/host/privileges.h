/* Gives up what the root process does not need once it serves: capabilities that it never uses, new
 * privileges by exec, and system calls that neither it nor any of its descendants makes
 * (inside/stage/seccomp.h). A fault in it then cannot load a module, start another kernel, set the
 * clock, or trace hardware.
 *
 * Domains lose nothing: a new user namespace starts with all capabilities, which count only in
 * it. */
#pragma once

#include "inside/stage/seccomp.h"
#include "lib/base/err.h"

/* Makes the filter that privileges_drop loads. Needs no rights, so a child does it
 * (warden/config.c). */
int privileges_compile(struct seccomp_prog *ret, struct sg_error *e);
int privileges_drop(const struct seccomp_prog *filter, struct sg_error *e);
