/* Pictures: shown in the terminal if it can, else saved to a file whose name is told.
 *
 *   kitty    kitty, Ghostty, WezTerm: PNG as it is
 *   iterm    iTerm2, mintty, VS Code: PNG and JPEG as they are
 *   sixel    terminals that say so when they are asked: PNG, decoded here
 *
 * Inside tmux and screen none of these arrives, so it is a file there. SVG is always a file. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

enum repl_graphics {
    REPL_GRAPHICS_NONE,
    REPL_GRAPHICS_KITTY,
    REPL_GRAPHICS_ITERM,
    REPL_GRAPHICS_SIXEL,
    REPL_GRAPHICS_MAX_
};

/* What the environment says about the terminal. It does not know about sixels. */
enum repl_graphics repl_graphics_of_environment(void);
/* Whether nothing of the kind can arrive. */
bool repl_graphics_in_multiplexer(void);
/* Asks the terminal for sixels and waits a moment for its answer. Only while nothing else reads
 * from it. */
bool repl_graphics_ask_sixel(int in, int out);
/* Whether an answer to that question says so: ESC [ ? 62 ; 4 ; 22 c. */
bool repl_graphics_has_sixel(const char *answer);

/* The sequences. `base64` is text of a result; what is not base64 is -EINVAL, since it would be
 * a way to the terminal. */
int repl_kitty_encode(struct strbuf *out, const char *base64, size_t len);
int repl_iterm_encode(struct strbuf *out, const char *base64, size_t len);

/* Writes data to a new file sandglass-<n>.<suffix> in the current directory, or where temporary
 * files are if that cannot be written. *ret: its name. */
int repl_image_save(const void *data, size_t len, const char *suffix, char **ret,
                    struct sg_error *e);
