#include "lib/http/chunked.h"

#include "lib/text/parse.h"

/*   SIZE --';'--> EXTENSION --CR--> SIZE_LF --> DATA --> DATA_CR --> DATA_LF --> SIZE
 *     `------------CR-----------------^  `-- 0 --> LINE_START --CR--> END_LF --> DONE
 *                                                    |    ^
 *                                                 TRAILER | LF
 *                                                    `CR-> TRAILER_LF */
enum {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    LINE_START,
    TRAILER,
    TRAILER_LF,
    END_LF,
    DONE
};

#define DIGITS_MAX 16

static bool is_control(unsigned char b)
{
    return (b < 0x20 && b != '\t') || b == 0x7f;
}

static int size_byte(struct chunked *k, unsigned char b)
{
    int v = parse_hex(b);

    if (v < 0) {
        if (k->digits == 0 || (b != '\r' && b != ';'))
            return -EINVAL;
        k->line = 0;
        k->state = b == '\r' ? SIZE_LF : EXTENSION;
        return 0;
    }
    if (k->digits == DIGITS_MAX || k->left > (uint64_t)INT64_MAX >> 4)
        return -EINVAL;
    k->digits++;
    k->left = k->left << 4 | (unsigned)v;
    return 0;
}

/* Takes a byte of a line that is ignored: an extension or a trailer. */
static int ignored_byte(struct chunked *k, unsigned char b, unsigned max, uint8_t after_cr)
{
    if (b == '\r') {
        k->state = after_cr;
        return 0;
    }
    return is_control(b) || ++k->line > max ? -EINVAL : 0;
}

static int expect(struct chunked *k, unsigned char b, unsigned char wanted, uint8_t next)
{
    if (b != wanted)
        return -EINVAL;
    k->state = next;
    return 0;
}

static int framing_byte(struct chunked *k, unsigned char b)
{
    int r;

    switch (k->state) {
    case SIZE:
        return size_byte(k, b);
    case EXTENSION:
        return ignored_byte(k, b, CHUNK_EXTENSION_MAX, SIZE_LF);
    case SIZE_LF:
        return expect(k, b, '\n', k->left > 0 ? DATA : LINE_START);
    case DATA_CR:
        return expect(k, b, '\r', DATA_LF);
    case DATA_LF:
        k->digits = 0;
        return expect(k, b, '\n', SIZE);
    case LINE_START:
        if (b == '\r')
            return expect(k, b, '\r', END_LF);
        /* A trailer may not be folded, nor have an empty name. */
        r = b == ' ' || b == '\t' || b == ':' ? -EINVAL : 0;
        k->state = TRAILER;
        return r < 0 ? r : ignored_byte(k, b, CHUNK_TRAILER_MAX, TRAILER_LF);
    case TRAILER:
        return ignored_byte(k, b, CHUNK_TRAILER_MAX, TRAILER_LF);
    case TRAILER_LF:
        return expect(k, b, '\n', LINE_START);
    case END_LF:
        return expect(k, b, '\n', DONE);
    default:
        return -EINVAL;
    }
}

ssize_t chunked_feed(struct chunked *k, const char *p, size_t len, const char **ret_data,
                     size_t *ret_len)
{
    size_t used = 0;

    *ret_data = p;
    *ret_len = 0;
    while (used < len && k->state != DATA && k->state != DONE) {
        int r = framing_byte(k, (unsigned char)p[used++]);
        if (r < 0)
            return r;
    }
    if (k->state == DATA && used < len) {
        size_t n = len - used < k->left ? len - used : (size_t)k->left;

        *ret_data = p + used;
        *ret_len = n;
        used += n;
        k->left -= n;
        if (k->left == 0)
            k->state = DATA_CR;
    }
    return (ssize_t)used;
}

bool chunked_done(const struct chunked *k)
{
    return k->state == DONE;
}
