/* matplotlib's list of the fonts of this machine, for the template.
 *
 * matplotlib looks through all fonts when it is first imported and keeps what it found in ~/.cache.
 * In a sandbox that would be each time, for seconds where there are many fonts. So it is asked
 * once, when a template is made, and its list is put there.
 *
 * It is the host's python3 and matplotlib that make it, of the same /usr that sandboxes see, and
 * outside of one, since a sandbox needs a template: with no rights, as the front and the guard
 * (warden/host/program.h), by a script of ours (kernels/python/fonts.py). Where there is no
 * matplotlib, or no answer in time, there is no list, and sandboxes make their own. */
#pragma once

#include "lib/text/strbuf.h"

#define TEMPLATE_FONTS_SCRIPT "usr/local/lib/sandglass/kernels/python/fonts.py"
#define TEMPLATE_FONTS_NAME   64

/* Files and folders of the host that the list is made of: another list when one was changed. */
extern const char *const template_fonts_inputs[];
extern const size_t template_n_fonts_inputs;

/* The name of the list below ~/.cache/matplotlib, and what is in it. `at` is the template, with the
 * script. -ENOENT: there is none. */
int template_fonts_ask(int at, char ret_name[TEMPLATE_FONTS_NAME], struct strbuf *list);
