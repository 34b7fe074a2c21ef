/* Pictures: shown in the terminal if the terminal can do that, else saved to a file whose name is
 * printed.
 *
 *   kitty    kitty, Ghostty, WezTerm: PNG as it is
 *   iterm    iTerm2, mintty, VS Code: PNG and JPEG as they are
 *   sixel    terminals that say so when they are asked: PNG, decoded here
 *
 * Inside tmux and screen none of these arrives, so pictures become files there. SVG is always a
 * file. */
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

/* The way to show pictures that the environment tells of. It cannot tell whether sixels work. */
enum repl_graphics repl_graphics_of_environment(void);
/* Whether we run inside tmux or screen, where no picture arrives. */
bool repl_graphics_in_multiplexer(void);
/* Asks the terminal whether it shows sixels, and waits a little for its answer. Nothing else may
 * read from the terminal meanwhile. */
bool repl_graphics_ask_sixel(int in, int out);
/* Whether the terminal's answer says that it shows sixels: ESC [ ? 62 ; 4 ; 22 c. */
bool repl_graphics_has_sixel(const char *answer);

/* Each appends the sequence that shows a picture. `base64` is text from a result. Text that is not
 * base64 is refused with -EINVAL, since other characters could drive the terminal. */
int repl_kitty_encode(struct strbuf *out, const char *base64, size_t len);
int repl_iterm_encode(struct strbuf *out, const char *base64, size_t len);

/* Writes data to a new file sandglass-<n>.<suffix> in the current directory, or in the directory
 * for temporary files if the current one cannot be written. *ret: the file's name. */
int repl_image_save(const void *data, size_t len, const char *suffix, char **ret,
                    struct sg_error *e);
