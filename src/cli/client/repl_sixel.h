/* Draws pixels as sixels, the picture format of DEC's terminals, which many emulators know: bands
 * of six rows, and in each band one row of characters for each colour in it. The palette is fixed:
 * 6 x 6 x 6 colours, as in 256-colour terminals. An ordered dither pattern avoids stripes. */
#pragma once

#include "lib/text/strbuf.h"

struct repl_pixels {
    unsigned width, height;
    unsigned char *rgb; /* width * height * 3 */
};

/* PNGs with more pixels are refused. */
#define REPL_PIXELS_MAX (32u * 1000 * 1000)

/* Decodes a PNG with libpng, on a white background. -EINVAL if the data is no PNG, -EFBIG if it is
 * too large. */
int repl_png_decode(const void *png, size_t len, struct repl_pixels *ret);
void repl_pixels_done(struct repl_pixels *p);
/* Makes the picture at most max_width wide, by leaving out pixels; 0: no limit. */
void repl_pixels_fit(struct repl_pixels *p, unsigned max_width);
/* Appends the whole sixel sequence. */
void repl_sixel_encode(struct strbuf *out, const struct repl_pixels *p);
