/* Gives up what the root process does not need once it serves: capabilities that it never uses, new
 * privileges by exec, and system calls that neither it nor any of its descendants makes
 * (inside/stage/seccomp.h). A fault in it then cannot load a module, start another kernel, set the
 * clock, or trace hardware.
 *
 * Domains lose nothing: a new user namespace starts with all capabilities, which count only in
 * it. */
#pragma once

#include "lib/base/err.h"

int privileges_drop(struct sg_error *e);
