#include "cli/client/repl_sixel.h"

#include <png.h>

#define LEVELS   6 /* levels of each primary colour */
#define COLOURS  (LEVELS * LEVELS * LEVELS)
#define BAND     6
#define SIDE_MAX 16384u

int repl_png_decode(const void *png, size_t len, struct repl_pixels *ret)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    png_color white = {255, 255, 255};
    int r = -EINVAL;

    if (!png_image_begin_read_from_memory(&image, png, len))
        return -EINVAL;
    image.format = PNG_FORMAT_RGB;
    if (image.width > SIDE_MAX || image.height > SIDE_MAX ||
        (uint64_t)image.width * image.height > REPL_PIXELS_MAX) {
        png_image_free(&image);
        return -EFBIG;
    }
    unsigned char *rgb = malloc((size_t)image.width * image.height * 3);
    if (rgb && png_image_finish_read(&image, &white, rgb, 0, NULL)) {
        *ret = (struct repl_pixels){.width = image.width, .height = image.height, .rgb = rgb};
        rgb = NULL;
        r = 0;
    }
    free(rgb);
    png_image_free(&image);
    return r;
}

void repl_pixels_done(struct repl_pixels *p)
{
    free(p->rgb);
    p->rgb = NULL;
}

void repl_pixels_fit(struct repl_pixels *p, unsigned max_width)
{
    if (max_width == 0 || p->width <= max_width)
        return;
    unsigned height = (unsigned)((uint64_t)p->height * max_width / p->width);
    if (height == 0)
        height = 1;
    /* In place: a pixel never moves to a later position. */
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < max_width; x++) {
            size_t from_y = (uint64_t)y * p->height / height,
                   from_x = (uint64_t)x * p->width / max_width;

            memmove(p->rgb + ((size_t)y * max_width + x) * 3,
                    p->rgb + (from_y * p->width + from_x) * 3, 3);
        }
    p->width = max_width;
    p->height = height;
}

/* Dithers: a value between two levels of the palette becomes the upper one in some places of a 4 x
 * 4 pattern. */
static unsigned level(unsigned char value, unsigned x, unsigned y)
{
    static const unsigned char pattern[4][4] = {
        {0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
    unsigned scaled = value * (LEVELS - 1) * 16 / 255; /* sixteenths of a level */

    return (scaled + pattern[y % 4][x % 4]) / 16;
}

static unsigned colour_at(const struct repl_pixels *p, unsigned x, unsigned y)
{
    const unsigned char *c = p->rgb + ((size_t)y * p->width + x) * 3;

    return (level(c[0], x, y) * LEVELS + level(c[1], x, y)) * LEVELS + level(c[2], x, y);
}

static void add_run(struct strbuf *out, char c, unsigned n)
{
    if (n > 3) {
        strbuf_addf(out, "!%u%c", n, c);
        return;
    }
    while (n-- > 0)
        strbuf_addch(out, c);
}

/* Appends the pixels of one colour in a band. masks[x]: which of the six rows have the colour. */
static void add_row(struct strbuf *out, unsigned colour, const unsigned char *masks, unsigned width)
{
    unsigned run = 0;

    while (width > 0 && masks[width - 1] == 0)
        width--; /* pixels that are not written stay as they are */
    strbuf_addf(out, "#%u", colour);
    for (unsigned x = 0; x < width; x += run) {
        for (run = 1; x + run < width && masks[x + run] == masks[x];)
            run++;
        add_run(out, (char)('?' + masks[x]), run);
    }
}

static void add_band(struct strbuf *out, const struct repl_pixels *p, unsigned top,
                     unsigned char *masks)
{
    bool used[COLOURS] = {false}, first = true;

    memset(masks, 0, (size_t)COLOURS * p->width);
    for (unsigned row = 0; row < BAND && top + row < p->height; row++)
        for (unsigned x = 0; x < p->width; x++) {
            unsigned colour = colour_at(p, x, top + row);

            used[colour] = true;
            masks[(size_t)colour * p->width + x] |= (unsigned char)(1u << row);
        }
    for (unsigned colour = 0; colour < COLOURS; colour++) {
        if (!used[colour])
            continue;
        if (!first)
            strbuf_addch(out, '$'); /* back to the left edge of the band */
        first = false;
        add_row(out, colour, masks + (size_t)colour * p->width, p->width);
    }
    strbuf_addch(out, '-');
}

static void add_palette(struct strbuf *out)
{
    for (unsigned i = 0; i < COLOURS; i++)
        strbuf_addf(out, "#%u;2;%u;%u;%u", i, i / (LEVELS * LEVELS) * 100 / (LEVELS - 1),
                    i / LEVELS % LEVELS * 100 / (LEVELS - 1), i % LEVELS * 100 / (LEVELS - 1));
}

void repl_sixel_encode(struct strbuf *out, const struct repl_pixels *p)
{
    AUTO(free_p) unsigned char *masks = malloc((size_t)COLOURS * p->width);

    if (!masks)
        return;
    strbuf_addf(out, "\033Pq\"1;1;%u;%u", p->width, p->height);
    add_palette(out);
    for (unsigned top = 0; top < p->height; top += BAND)
        add_band(out, p, top, masks);
    strbuf_addstr(out, "\033\\");
}
