/* Finds JSON Web Tokens: parts in base64url with dots between, of which the first is a JSON object
 * that names the algorithm of the signature. Other base64 that begins with {" is no token. */

#include "lib/text/base64.h"
#include "lib/sanitise/impl.h"

#define HEADER_MAX 400

static bool names_algorithm(const struct view *v, size_t from, size_t len)
{
    AUTO(strbuf_done) struct strbuf text = strbuf_upto(HEADER_MAX);

    if (base64_decode(&text, (const char *)v->p + from, len) < 0)
        return false;
    return memmem(text.buf, text.len, "\"alg\"", 5);
}

void spot_jwt(const struct view *v, size_t to, struct finds *out)
{
    size_t start = to - 3;

    if (!view_word_begins(v, start) || view_at(v, start - 1) == '-')
        return;
    size_t header = view_span(v, start, CC_TOKEN, HEADER_MAX);
    if (header < 16)
        return;
    /* A header with a chain of certificates is longer than this; its beginning must do. Four
     * characters are three bytes. */
    bool long_one = header == HEADER_MAX;
    size_t end = start + header;
    if (!long_one && (view_at(v, end) != '.' || view_span(v, end + 1, CC_TOKEN | CC_DOT, 4) < 4))
        return;
    if (!names_algorithm(v, start, header / 4 * 4))
        return;
    end = start + view_span(v, start, CC_TOKEN | CC_DOT, AHEAD - 64);
    find_add(out, start, end, KIND_JWT, TAIL_DOTTED);
}
