/* Pixels as sixels, the picture format of DEC's terminals that many emulators know: bands of six
 * rows, in each band one row of characters for each colour in it. The palette is fixed, 6 x 6 x 6
 * colours as in 256-colour terminals, with an ordered pattern against stripes. */
#pragma once

#include "lib/text/strbuf.h"

struct repl_pixels {
    unsigned width, height;
    unsigned char *rgb; /* width * height * 3 */
};

/* At most this many pixels are taken from a PNG. */
#define REPL_PIXELS_MAX (32u * 1000 * 1000)

/* Decodes a PNG on white, by libpng. -EINVAL if it is none, -EFBIG if it is too large. */
int repl_png_decode(const void *png, size_t len, struct repl_pixels *ret);
void repl_pixels_done(struct repl_pixels *p);
/* Makes it at most max_width wide, by leaving out pixels; 0: no limit. */
void repl_pixels_fit(struct repl_pixels *p, unsigned max_width);
/* Appends the whole sequence. */
void repl_sixel_encode(struct strbuf *out, const struct repl_pixels *p);
