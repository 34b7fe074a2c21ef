#include "lib/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Messages quote file names and arguments of strangers, so control characters are replaced: one
 * line stays one line and a terminal sees no escape sequence. */
static void make_one_line(char *s)
{
    for (unsigned char *p = (unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

/* A text cut at a fixed size may end inside a UTF-8 sequence: drops the unfinished end. */
static void trim_partial_utf8(char *s)
{
    size_t len = strlen(s), start = len;

    while (start > 0 && len - start < 3 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;

    unsigned char lead = (unsigned char)s[start - 1];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (len - (start - 1) < want)
        s[start - 1] = '\0';
}

/* Formats into buf, cutting the end off if it does not fit. */
PRINTF(3, 0) static void format(char *buf, size_t cap, const char *fmt, va_list ap)
{
    int n = vsnprintf(buf, cap, fmt, ap);

    if (n < 0)
        buf[0] = '\0';
    else if ((size_t)n >= cap)
        trim_partial_utf8(buf);
    make_one_line(buf);
}

/* Appends as much of text as fits. */
static void append(char *buf, size_t cap, const char *text)
{
    size_t len = strlen(buf), n = strlen(text);
    bool cut = n > cap - 1 - len;

    if (cut)
        n = cap - 1 - len;
    memcpy(buf + len, text, n);
    buf[len + n] = '\0';
    if (cut)
        trim_partial_utf8(buf);
}

int err_set(struct sg_error *e, enum sg_error_kind kind, int code, const char *fmt, ...)
{
    va_list ap;

    assert(code < 0);
    if (!e)
        return code;

    struct sg_error made = {.kind = kind, .code = code};
    va_start(ap, fmt);
    format(made.message, sizeof(made.message), fmt, ap);
    va_end(ap);
    *e = made;
    return code;
}

int err_errno(struct sg_error *e, const char *fmt, ...)
{
    int err = errno > 0 ? errno : EIO; /* a caller without an errno must not return success */
    va_list ap;

    if (!e)
        return -err;

    struct sg_error made = {.kind = err_kind_of(err), .code = -err};
    const char *reason = strerror(err);
    /* A long name in the context must not push out the reason. */
    size_t room = sizeof(made.message) - strlen(": ") - strnlen(reason, 128);

    va_start(ap, fmt);
    format(made.message, room, fmt, ap);
    va_end(ap);
    append(made.message, sizeof(made.message), ": ");
    append(made.message, sizeof(made.message), reason);
    *e = made;
    errno = err;
    return -err;
}

int err_wrap(struct sg_error *e, int r, const char *fmt, ...)
{
    char message[sizeof(e->message)];
    va_list ap;

    if (!e)
        return r;

    va_start(ap, fmt);
    format(message, sizeof(message), fmt, ap);
    va_end(ap);
    append(message, sizeof(message), ": ");
    append(message, sizeof(message), e->message);
    memcpy(e->message, message, sizeof(message));
    return r;
}

enum sg_error_kind err_kind_of(int err)
{
    switch (err) {
    case 0:
        return SG_ERR_NONE;
    case EINVAL:
    case E2BIG:
    case EDOM:
    case ERANGE:
    case EILSEQ:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EEXIST:
    case ENOTEMPTY:
    case ENOEXEC:
        return SG_ERR_INVALID;
    case ENOENT:
    case ENXIO:
    case ENODEV:
        return SG_ERR_NOT_FOUND;
    case EPERM:
    case EACCES:
    case EROFS:
        return SG_ERR_DENIED;
    case ENOSYS:
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
        return SG_ERR_UNSUPPORTED;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EUSERS:
    case EMSGSIZE:
        return SG_ERR_LIMIT;
    case EPIPE:
    case ECONNRESET:
    case ESRCH:
        return SG_ERR_GONE;
    default:
        return SG_ERR_INTERNAL;
    }
}

/* Whose fault an errno is that came from somebody else's files and processes: theirs, unless it
 * would be the same with any other files. */
static enum sg_error_kind whose_fault(int err)
{
    switch (err) {
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EUSERS:
        return SG_ERR_LIMIT;
    case EIO:
    case EROFS:
    case ENODEV:
    case ENOSYS:
    case EBADF:
    case EFAULT:
        return SG_ERR_INTERNAL;
    default:
        return SG_ERR_GONE;
    }
}

int err_in_the_way(struct sg_error *e, int r)
{
    enum sg_error_kind kind = whose_fault(-r);

    if (kind == SG_ERR_GONE)
        r = -EBUSY;
    if (e) {
        e->kind = kind;
        e->code = r;
    }
    return r;
}
