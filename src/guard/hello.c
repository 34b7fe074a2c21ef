#include "guard/peek_impl.h"

#define RECORD_HEADER  5
#define RECORD_MAX     16384
#define MESSAGE_HEADER 4
#define CLIENT_HELLO   1

#define EXT_SERVER_NAME 0
#define EXT_ECH         0xfe0d

/* ---- a cursor that cannot leave its bytes ---------------------------------------------------- */

struct cursor {
    const uint8_t *p;
    size_t len;
};

static bool take(struct cursor *c, size_t len, struct cursor *ret)
{
    if (len > c->len)
        return false;
    *ret = (struct cursor){c->p, len};
    c->p += len;
    c->len -= len;
    return true;
}

static bool take_number(struct cursor *c, size_t bytes, size_t *ret)
{
    struct cursor n;

    if (!take(c, bytes, &n))
        return false;
    *ret = 0;
    for (size_t i = 0; i < bytes; i++)
        *ret = *ret << 8 | n.p[i];
    return true;
}

/* Takes a vector: its length in `bytes` bytes, then its content. */
static bool take_vector(struct cursor *c, size_t bytes, struct cursor *ret)
{
    size_t len;

    return take_number(c, bytes, &len) && take(c, len, ret);
}

/* ---- the message ----------------------------------------------------------------------------- */

/* Reads the server name: exactly one, of type host. No other type has been defined, and there must
 * not be two of one. */
static bool read_server_name(struct cursor ext, struct peek *ret)
{
    struct cursor list, name;
    size_t type;

    return take_vector(&ext, 2, &list) && ext.len == 0 && take_number(&list, 1, &type) &&
           type == 0 && take_vector(&list, 2, &name) && list.len == 0 && name.len > 0 &&
           peek_host((const char *)name.p, name.len, ret) == 0;
}

static bool read_extensions(struct cursor all, struct peek *ret)
{
    uint8_t seen[65536 / 8] = {0};
    struct cursor ext;
    size_t type;

    while (all.len > 0) {
        if (!take_number(&all, 2, &type) || !take_vector(&all, 2, &ext))
            return false;
        if (seen[type / 8] & 1u << type % 8)
            return false;
        seen[type / 8] |= (uint8_t)(1u << type % 8);
        if (type == EXT_SERVER_NAME && !read_server_name(ext, ret))
            return false;
        if (type == EXT_ECH)
            ret->ech = true;
    }
    return true;
}

static bool read_hello(struct cursor hello, struct peek *ret)
{
    struct cursor random, session, suites, compressions, extensions;
    size_t version;

    if (!take_number(&hello, 2, &version) || version >> 8 != 3 || !take(&hello, 32, &random) ||
        !take_vector(&hello, 1, &session) || session.len > 32 || !take_vector(&hello, 2, &suites) ||
        suites.len < 2 || suites.len % 2 || !take_vector(&hello, 1, &compressions) ||
        compressions.len < 1)
        return false;
    if (hello.len == 0)
        return true; /* a hello from before there were extensions */
    return take_vector(&hello, 2, &extensions) && hello.len == 0 &&
           read_extensions(extensions, ret);
}

/* ---- the records that carry the message ------------------------------------------------------ */

/* Reads the header of a record that carries a piece of the message. */
static enum peek_what read_record_header(const uint8_t *p, size_t len, size_t *ret_len)
{
    static const uint8_t begin[] = {0x16, 3};

    if (memcmp(p, begin, len < sizeof(begin) ? len : sizeof(begin)) != 0 || (len > 2 && p[2] > 4))
        return PEEK_BAD;
    if (len < RECORD_HEADER)
        return PEEK_MORE;
    *ret_len = (size_t)p[3] << 8 | p[4];
    return *ret_len == 0 || *ret_len > RECORD_MAX ? PEEK_BAD : PEEK_TLS;
}

/* Checks the beginning of the message. left: bytes that are still to come in its record; the
 * message may end with them, and they must not go beyond it. */
static enum peek_what check_message(const uint8_t *message, size_t have, size_t left,
                                    size_t *ret_len)
{
    if (message[0] != CLIENT_HELLO)
        return PEEK_BAD;
    if (have < MESSAGE_HEADER)
        return PEEK_MORE;
    *ret_len = MESSAGE_HEADER + ((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
    if (*ret_len > PEEK_MAX - RECORD_HEADER)
        return PEEK_BAD;
    if (have + left > *ret_len)
        return PEEK_BAD;
    return have == *ret_len ? PEEK_TLS : PEEK_MORE;
}

/* Puts the message together from its records, in the order of the bytes, so that a verdict on some
 * bytes still holds when more have come. */
static enum peek_what collect(const uint8_t *p, size_t len, uint8_t *message, size_t *ret_len)
{
    size_t have = 0, record = 0, piece;
    enum peek_what what;

    while (len > 0) {
        what = read_record_header(p, len, &record);
        if (what != PEEK_TLS)
            return what;
        p += RECORD_HEADER;
        len -= RECORD_HEADER;
        piece = record < len ? record : len;
        if (piece == 0)
            break;
        memcpy(message + have, p, piece);
        have += piece;
        p += piece;
        len -= piece;
        what = check_message(message, have, record - piece, ret_len);
        if (what != PEEK_MORE)
            return what;
    }
    return PEEK_MORE;
}

void peek_tls(const uint8_t *p, size_t len, struct peek *ret)
{
    uint8_t message[PEEK_MAX];
    size_t message_len = 0;

    *ret = (struct peek){0};
    if (len >= 2 && p[1] != 3) {
        ret->what = PEEK_OTHER; /* another protocol whose first byte happens to be 0x16 */
        return;
    }
    ret->what = collect(p, len < PEEK_MAX ? len : PEEK_MAX, message, &message_len);
    if (ret->what == PEEK_MORE && len >= PEEK_MAX)
        ret->what = PEEK_BAD;
    if (ret->what == PEEK_TLS &&
        !read_hello((struct cursor){message + MESSAGE_HEADER, message_len - MESSAGE_HEADER}, ret))
        *ret = (struct peek){.what = PEEK_BAD};
}
