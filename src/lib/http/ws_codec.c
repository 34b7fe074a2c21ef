#include "lib/http/ws_codec.h"

#define KEEP_MAX  (64u * 1024) /* memory that stays for the next message */
#define FIRST_CAP 4096

static void begin_frame(struct ws_codec *c)
{
    c->head_len = 0;
    c->head_need = 2;
    c->mask_at = 0;
}

void ws_codec_init(struct ws_codec *c, size_t message_max)
{
    *c = (struct ws_codec){.message_max = message_max};
    begin_frame(c);
}

void ws_codec_done(struct ws_codec *c)
{
    free(c->buf);
    *c = (struct ws_codec){0};
}

static void broken(struct ws_seen *ret, unsigned code, const char *why)
{
    *ret = (struct ws_seen){.what = WS_BROKEN, .code = code, .why = why};
}

void ws_unmask(char *to, const char *from, size_t n, const uint8_t mask[4], unsigned at)
{
    uint8_t turned[8];
    uint64_t m, v;

    for (unsigned i = 0; i < sizeof(turned); i++)
        turned[i] = mask[(at + i) & 3];
    memcpy(&m, turned, sizeof(m));
    for (; n >= sizeof(v); n -= sizeof(v), to += sizeof(v), from += sizeof(v)) {
        memcpy(&v, from, sizeof(v));
        v ^= m;
        memcpy(to, &v, sizeof(v));
    }
    for (size_t i = 0; i < n; i++)
        to[i] = (char)((uint8_t)from[i] ^ turned[i]);
}

/* ---- head ------------------------------------------------------------------------------------ */

static bool is_control(uint8_t opcode)
{
    return (opcode & 8) != 0;
}

static unsigned head_size(const struct ws_codec *c)
{
    unsigned n = c->head[1] & 0x7f;

    return 2 + (n == 126 ? 2 : n == 127 ? 8 : 0) + 4;
}

/* The fault in the first two bytes of a frame; NULL: none. */
static const char *check_start(const struct ws_codec *c)
{
    uint8_t opcode = c->head[0] & 0x0f, n = c->head[1] & 0x7f;

    if (c->head[0] & 0x70)
        return "reserved bits are set, and no extension was agreed on";
    if (!(c->head[1] & 0x80))
        return "a frame of a client must be masked";
    if (opcode != WS_OP_CONTINUE && opcode != WS_OP_TEXT && opcode != WS_OP_BINARY &&
        (opcode < WS_OP_CLOSE || opcode > WS_OP_PONG))
        return "no such opcode";
    if (is_control(opcode) && (n > WS_CONTROL_MAX || !(c->head[0] & 0x80)))
        return "a control frame is longer than 125 bytes, or in several pieces";
    if (!is_control(opcode) && (opcode == WS_OP_CONTINUE) != c->in_message)
        return c->in_message ? "a message began before the last was whole"
                             : "a continuation frame without a message";
    return NULL;
}

/* Reads the payload's length. -1: not in the shortest form, or longer than the standard allows. */
static int read_length(const struct ws_codec *c, uint64_t *ret)
{
    unsigned n = c->head[1] & 0x7f, bytes = n == 126 ? 2 : n == 127 ? 8 : 0;
    uint64_t v = n;

    if (bytes > 0)
        v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | c->head[2 + i];
    if ((bytes == 2 && v < 126) || (bytes == 8 && (v <= 0xffff || v >> 63)))
        return -1;
    *ret = v;
    return 0;
}

/* The head is whole. False: ret says what is wrong with it. */
static bool read_head(struct ws_codec *c, struct ws_seen *ret)
{
    const char *why = check_start(c);

    if (why || read_length(c, &c->left) < 0) {
        broken(ret, WS_PROTOCOL, why ? why : "a length is not in its shortest form");
        return false;
    }
    c->opcode = c->head[0] & 0x0f;
    c->fin = (c->head[0] & 0x80) != 0;
    memcpy(c->mask, c->head + c->head_need - 4, 4);
    c->head_need = 0;
    if (is_control(c->opcode)) {
        c->control_len = 0;
        return true;
    }
    if (c->left > c->message_max || c->len > c->message_max - (size_t)c->left) {
        broken(ret, WS_TOO_BIG, "the message is too long");
        return false;
    }
    if (!c->in_message) {
        c->in_message = true;
        c->text = c->opcode == WS_OP_TEXT;
        c->utf8 = (struct utf8_state){0};
    }
    return true;
}

/* Returns how many bytes were used; c->head_need is 0 when the head is whole. */
static size_t feed_head(struct ws_codec *c, const char *p, size_t n, struct ws_seen *ret)
{
    size_t used = 0;

    while (used < n && c->head_need > 0) {
        size_t k = c->head_need - c->head_len;

        k = k < n - used ? k : n - used;
        memcpy(c->head + c->head_len, p + used, k);
        c->head_len += (unsigned)k;
        used += k;
        if (c->head_len < c->head_need)
            break;
        if (c->head_need == 2) {
            const char *why = check_start(c);
            if (why) {
                broken(ret, WS_PROTOCOL, why);
                break;
            }
            c->head_need = head_size(c);
        } else if (!read_head(c, ret)) {
            break;
        }
    }
    return used;
}

/* ---- payload --------------------------------------------------------------------------------- */

/* Makes room for `more` bytes, which are within message_max. */
static bool grow(struct ws_codec *c, size_t more)
{
    size_t need = c->len + more, cap = c->cap > 0 ? c->cap : FIRST_CAP;

    if (need <= c->cap)
        return true;
    while (cap < need)
        cap *= 2;
    cap = cap < c->message_max || need > c->message_max ? cap : c->message_max;
    char *buf = realloc(c->buf, cap);
    if (!buf)
        return false;
    c->buf = buf;
    c->cap = cap;
    return true;
}

static bool take_data(struct ws_codec *c, const char *p, size_t n, struct ws_seen *ret)
{
    if (!grow(c, n)) {
        broken(ret, WS_INTERNAL, "out of memory");
        return false;
    }
    ws_unmask(c->buf + c->len, p, n, c->mask, c->mask_at);
    if (c->text && !utf8_feed(&c->utf8, c->buf + c->len, n)) {
        broken(ret, WS_NOT_UTF8, "a text is not UTF-8");
        return false;
    }
    c->len += n;
    return true;
}

static void end_message(struct ws_codec *c, struct ws_seen *ret)
{
    if (c->text && !utf8_whole(&c->utf8)) {
        broken(ret, WS_NOT_UTF8, "a text is not UTF-8");
        return;
    }
    *ret = (struct ws_seen){
        .what = WS_MESSAGE, .text = c->text, .data = c->buf ? c->buf : "", .len = c->len};
    c->in_message = false;
}

bool ws_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static void end_close(const struct ws_codec *c, struct ws_seen *ret)
{
    const uint8_t *p = (const uint8_t *)c->control;

    if (c->control_len == 0) {
        *ret = (struct ws_seen){.what = WS_CLOSE, .data = "", .code = WS_NO_CODE};
        return;
    }
    unsigned code = c->control_len >= 2 ? (unsigned)p[0] << 8 | p[1] : 0;
    if (!ws_code_valid(code))
        broken(ret, WS_PROTOCOL, "the code of the close frame is not valid");
    else if (!utf8_valid(c->control + 2, c->control_len - 2))
        broken(ret, WS_NOT_UTF8, "the reason of the close frame is not UTF-8");
    else
        *ret = (struct ws_seen){
            .what = WS_CLOSE, .data = c->control + 2, .len = c->control_len - 2, .code = code};
}

/* The frame's last byte has come. */
static void end_frame(struct ws_codec *c, struct ws_seen *ret)
{
    if (!is_control(c->opcode)) {
        if (c->fin)
            end_message(c, ret);
    } else if (c->opcode == WS_OP_CLOSE) {
        end_close(c, ret);
    } else {
        *ret = (struct ws_seen){.what = c->opcode == WS_OP_PING ? WS_PING : WS_PONG,
                                .data = c->control,
                                .len = c->control_len};
    }
    begin_frame(c);
}

static size_t feed_payload(struct ws_codec *c, const char *p, size_t n, struct ws_seen *ret)
{
    size_t k = n < c->left ? n : (size_t)c->left;

    if (is_control(c->opcode)) {
        ws_unmask(c->control + c->control_len, p, k, c->mask, c->mask_at);
        c->control_len += k;
    } else if (k > 0 && !take_data(c, p, k, ret)) {
        return k;
    }
    c->left -= k;
    c->mask_at = (c->mask_at + (unsigned)(k & 3)) & 3;
    if (c->left == 0)
        end_frame(c, ret);
    return k;
}

/* Forgets the last message. Its memory stays for the next one, unless it is more than KEEP_MAX. */
static void forget_message(struct ws_codec *c)
{
    if (c->in_message || c->len == 0)
        return;
    c->len = 0;
    if (c->cap <= KEEP_MAX)
        return;
    free(steal_ptr(&c->buf));
    c->cap = 0;
}

size_t ws_codec_feed(struct ws_codec *c, const char *p, size_t n, struct ws_seen *ret)
{
    size_t used = 0;

    *ret = (struct ws_seen){.what = WS_MORE};
    forget_message(c);
    while (used < n && ret->what == WS_MORE) {
        if (c->head_need > 0)
            used += feed_head(c, p + used, n - used, ret);
        if (c->head_need == 0 && ret->what == WS_MORE)
            used += feed_payload(c, p + used, n - used, ret);
    }
    return used;
}

/* ---- ours ------------------------------------------------------------------------------------ */

size_t ws_frame_head(uint8_t ret[WS_HEAD_OWN], enum ws_opcode opcode, size_t len)
{
    unsigned bytes = len < 126 ? 0 : len <= 0xffff ? 2 : 8;
    uint64_t v = len;

    ret[0] = (uint8_t)(0x80 | opcode);
    ret[1] = (uint8_t)(bytes == 0 ? len : bytes == 2 ? 126 : 127);
    for (unsigned i = bytes; i > 0; i--, v >>= 8)
        ret[1 + i] = (uint8_t)v;
    return 2 + bytes;
}

size_t ws_frame_size(const void *frame)
{
    const uint8_t *p = frame;
    unsigned n = p[1] & 0x7f, bytes = n == 126 ? 2 : n == 127 ? 8 : 0;
    uint64_t v = bytes > 0 ? 0 : n;

    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[2 + i];
    return 2 + bytes + (size_t)v;
}
