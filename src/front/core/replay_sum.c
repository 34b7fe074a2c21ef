#include "front/core/replay_impl.h"

#include <stdio.h>
#include <string.h>

#include "wire/agent.h"

/* Larger than what is shown, because the sanitiser must see a secret as a whole to replace it. */
#define SHOWN_ROOM 1024

void cell_history_sum_init(struct cell_history_sum *s)
{
    *s = (struct cell_history_sum){.shown = strbuf_upto(SHOWN_ROOM)};
}

void cell_history_sum_done(struct cell_history_sum *s)
{
    for (size_t i = 0; i < CELL_HISTORY_PARTS_; i++)
        EVP_MD_CTX_free(s->parts[i]);
    strbuf_done(&s->shown);
}

static EVP_MD_CTX *part(struct cell_history_sum *s, enum cell_history_part which)
{
    EVP_MD_CTX **at = &s->parts[which];

    if (!*at) {
        *at = EVP_MD_CTX_new();
        if (!*at || EVP_DigestInit_ex(*at, EVP_sha256(), NULL) != 1)
            abort(); /* out of memory: fatal, as for all small allocations */
    }
    return *at;
}

static void show(struct cell_history_sum *s, const char *p, size_t len)
{
    size_t room = SHOWN_ROOM - s->shown.len;

    strbuf_add(&s->shown, p, len < room ? len : room);
}

/* Adds what people see of a packet: the text of a result, the name and value of an error
 * (kernels/README.md). */
static void show_packet(struct cell_history_sum *s, const char *p, size_t len)
{
    static const char *const fields[] = {"text", "name", "value"};
    const char *end = len > 1 && p[0] == 'T' ? memchr(p + 1, '\0', len - 1) : NULL;

    for (size_t i = 0; end && i < ARRAY_SIZE(fields); i++)
        if (strcmp(p + 1, fields[i]) == 0) {
            show(s, end + 1, len - (size_t)(end + 1 - p));
            show(s, "\n", 1);
            return;
        }
}

void cell_history_sum_add(struct cell_history_sum *s, uint8_t sub, const void *p, size_t len)
{
    enum cell_history_part which = sub == CHAN_STDOUT   ? CELL_HISTORY_STDOUT
                                   : sub == CHAN_STDERR ? CELL_HISTORY_STDERR
                                                        : CELL_HISTORY_RESULTS;

    EVP_DigestUpdate(part(s, which), p, len);
    if (which == CELL_HISTORY_RESULTS)
        show_packet(s, p, len);
    else
        show(s, p, len);
}

/* Copies any bytes as valid text: bytes that are no character become '?', and the text is cut
 * between two characters. */
static void copy_text(const struct strbuf *from, char ret[REPLAY_SHOWN_MAX + 1])
{
    size_t n = from->len < REPLAY_SHOWN_MAX ? from->len : REPLAY_SHOWN_MAX;

    while (n > 0 && n < from->len && ((unsigned char)from->buf[n] & 0xc0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++)
        ret[i] = from->buf[i] ? from->buf[i] : '?';
    ret[n] = '\0';
    json_t *v = json_string(ret);
    for (size_t i = 0; !v && i < n; i++)
        if ((unsigned char)ret[i] >= 0x80)
            ret[i] = '?';
    json_decref(v);
}

void cell_history_sum_end(struct cell_history_sum *s, struct output_filter *o,
                          char digest[CELL_HISTORY_DIGEST_LEN + 1],
                          char shown[REPLAY_SHOWN_MAX + 1])
{
    unsigned char one[EVP_MAX_MD_SIZE], all[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *sum = EVP_MD_CTX_new();

    if (!sum || EVP_DigestInit_ex(sum, EVP_sha256(), NULL) != 1)
        abort();
    for (size_t i = 0; i < CELL_HISTORY_PARTS_; i++) {
        unsigned len = 0;
        EVP_DigestFinal_ex(part(s, (enum cell_history_part)i), one, &len);
        EVP_DigestUpdate(sum, one, len);
    }
    EVP_DigestFinal_ex(sum, all, NULL);
    EVP_MD_CTX_free(sum);
    for (size_t i = 0; i < CELL_HISTORY_DIGEST_LEN / 2; i++)
        snprintf(digest + 2 * i, 3, "%02x", all[i]);
    output_filter_clean(o, &s->shown);
    copy_text(&s->shown, shown);
}
