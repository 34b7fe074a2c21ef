/* matplotlib's list of the fonts of this machine, for the template.
 *
 * When matplotlib is first imported, it reads all fonts and keeps the list in ~/.cache. Each
 * sandbox would do that again, which takes seconds where there are many fonts. So matplotlib is
 * asked once, when a template is made, and its list becomes part of the template.
 *
 * The host's python3 and matplotlib make the list, from the same /usr that sandboxes see. They
 * cannot run in a sandbox, since a sandbox needs a template. So they run without rights, as the
 * front and the guard do (warden/host/program.h), with a script of ours (kernels/python/fonts.py).
 * If there is no matplotlib, or no answer in time, there is no list, and sandboxes make their
 * own. */
#pragma once

#include "lib/text/strbuf.h"

#define TEMPLATE_FONTS_SCRIPT "usr/local/lib/sandglass/kernels/python/fonts.py"
#define TEMPLATE_FONTS_NAME   64

/* Gets the name of the list below ~/.cache/matplotlib, and its content. `at` is the template, with
 * the script in it. -ENOENT: there is no list. */
int template_fonts_ask(int at, char ret_name[TEMPLATE_FONTS_NAME], struct strbuf *list);
