#include "guard/socks5.h"

#include <assert.h>

#define SOCKS_VERSION 5
#define AUTH_VERSION  1

enum { METHOD_NONE = 0, METHOD_PASSWORD = 2, METHOD_REFUSED = 0xff };
enum { ADDRESS_V4 = 1, ADDRESS_NAME = 3, ADDRESS_V6 = 4 };
enum state { AWAIT_METHOD, AWAIT_AUTH, AWAIT_REPLY, CONNECTED, FAILED };

static void add_byte(struct strbuf *out, unsigned byte)
{
    strbuf_addch(out, (char)(uint8_t)byte);
}

void socks5_begin(struct socks5 *s, const struct policy_proxy *proxy, const char *name,
                  const struct net_addr *address, struct strbuf *out)
{
    bool password = proxy->username[0];

    *s = (struct socks5){.proxy = proxy, .address = *address, .state = AWAIT_METHOD};
    assert(strlen(name) <= POLICY_NAME_MAX);
    memcpy(s->name, name, strlen(name));
    add_byte(out, SOCKS_VERSION);
    add_byte(out, password ? 2 : 1);
    add_byte(out, METHOD_NONE);
    if (password)
        add_byte(out, METHOD_PASSWORD);
}

static int send_password(const struct policy_proxy *p, struct strbuf *out, struct sg_error *e)
{
    size_t name = strlen(p->username);

    if (p->password.len > 255)
        return err_invalid(e, "the password of the egress proxy is longer than 255 bytes");
    add_byte(out, AUTH_VERSION);
    add_byte(out, (unsigned)name);
    strbuf_add(out, p->username, name);
    add_byte(out, (unsigned)p->password.len);
    if (p->password.len)
        strbuf_add(out, p->password.bytes, p->password.len);
    return 0;
}

static void send_request(const struct socks5 *s, struct strbuf *out)
{
    static const uint8_t connect[] = {SOCKS_VERSION, 1, 0};

    strbuf_add(out, connect, sizeof(connect));
    if (s->name[0]) {
        add_byte(out, ADDRESS_NAME);
        add_byte(out, (unsigned)strlen(s->name));
        strbuf_addstr(out, s->name);
    } else if (net_addr_is_v4(&s->address)) {
        add_byte(out, ADDRESS_V4);
        strbuf_add(out, s->address.ip + 12, 4);
    } else {
        add_byte(out, ADDRESS_V6);
        strbuf_add(out, s->address.ip, 16);
    }
    add_byte(out, s->address.port >> 8);
    add_byte(out, s->address.port & 0xff);
}

static int broken(struct sg_error *e, const char *what)
{
    return err_set(e, SG_ERR_INVALID, -EPROTO, "the egress proxy does not speak SOCKS5: %s", what);
}

static int take_method(struct socks5 *s, struct strbuf *out, struct sg_error *e)
{
    if (s->buf[1] == METHOD_REFUSED)
        return err_set(e, SG_ERR_DENIED, -EACCES, "the egress proxy %s",
                       s->proxy->username[0]
                           ? "does not accept a user name and password"
                           : "requires a user name and password, or another authentication");
    if (s->buf[1] == METHOD_NONE) {
        send_request(s, out);
        s->state = AWAIT_REPLY;
        return 0;
    }
    if (s->buf[1] != METHOD_PASSWORD || !s->proxy->username[0])
        return broken(e, "it chose an authentication that was not offered");
    s->state = AWAIT_AUTH;
    return send_password(s->proxy, out, e);
}

static int take_auth(struct socks5 *s, struct strbuf *out, struct sg_error *e)
{
    if (s->buf[1] != 0)
        return err_set(e, SG_ERR_DENIED, -EACCES,
                       "the egress proxy refused its user name and password");
    send_request(s, out);
    s->state = AWAIT_REPLY;
    return 0;
}

static int refused(uint8_t code, struct sg_error *e)
{
    static const struct {
        int err;
        const char *why;
    } codes[] = {
        {EIO, "the proxy failed"},
        {EACCES, "the proxy's rules forbid the connection"},
        {ENETUNREACH, "the network cannot be reached"},
        {EHOSTUNREACH, "the host cannot be reached"},
        {ECONNREFUSED, "the connection was refused"},
        {ETIMEDOUT, "no answer in time"},
        {EOPNOTSUPP, "the proxy does not support CONNECT"},
        {EAFNOSUPPORT, "the proxy does not support this kind of address"},
    };

    if (code > ARRAY_SIZE(codes))
        return err_set(e, SG_ERR_DENIED, -EIO, "the egress proxy did not connect: code %u", code);
    return err_set(e, SG_ERR_DENIED, -codes[code - 1].err, "the egress proxy did not connect: %s",
                   codes[code - 1].why);
}

/* How many bytes the message must have, as far as the bytes so far can tell. */
static int wanted(const struct socks5 *s, struct sg_error *e)
{
    static const uint8_t versions[] = {
        [AWAIT_METHOD] = SOCKS_VERSION, [AWAIT_AUTH] = AUTH_VERSION, [AWAIT_REPLY] = SOCKS_VERSION};

    if (s->len >= 1 && s->buf[0] != versions[s->state])
        return broken(e, "another version");
    if (s->state != AWAIT_REPLY || s->len < 2)
        return 2;
    if (s->buf[1] != 0)
        return refused(s->buf[1], e);
    if (s->len < 5)
        return 5;
    if (s->buf[2] != 0)
        return broken(e, "a byte that must be zero is not");
    if (s->buf[3] == ADDRESS_V4)
        return 4 + 4 + 2;
    if (s->buf[3] == ADDRESS_V6)
        return 4 + 16 + 2;
    if (s->buf[3] == ADDRESS_NAME)
        return 4 + 1 + s->buf[4] + 2;
    return broken(e, "an unknown kind of address");
}

/* Handles a whole message. */
static int take_message(struct socks5 *s, struct strbuf *out, struct sg_error *e)
{
    if (s->state == AWAIT_METHOD)
        return take_method(s, out, e);
    if (s->state == AWAIT_AUTH)
        return take_auth(s, out, e);
    s->state = CONNECTED; /* the address that the proxy is bound to is of no use */
    return 1;
}

int socks5_feed(struct socks5 *s, const uint8_t *p, size_t len, size_t *ret_used,
                struct strbuf *out, struct sg_error *e)
{
    size_t used = 0;
    int r = 0, want;

    assert(s->state < CONNECTED);
    while (r == 0) {
        want = wanted(s, e);
        if (want < 0) {
            r = want;
        } else if (s->len == want) {
            r = take_message(s, out, e);
            s->len = 0;
        } else if (used == len) {
            break;
        } else {
            s->buf[s->len++] = p[used++];
        }
    }
    if (r < 0) {
        s->state = FAILED;
        return r;
    }
    *ret_used = used;
    return r;
}
