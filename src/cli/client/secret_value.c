/* Reads the value of a secret, from a file, standard input or a terminal, and from nowhere else. */
#include <fcntl.h>

#include "lib/base/fd.h"
#include "lib/command/terminal.h"
#include "cli/client/interrupt.h"
#include "cli/client/secret.h"

#define LINE_ENDS 2 /* bytes of a line end after the value, which do not count */

/* Removes one line end, which an editor or a shell has added. */
static void cut_end(struct strbuf *s)
{
    if (s->len > 0 && s->buf[s->len - 1] == '\n')
        s->buf[--s->len] = '\0';
    if (s->len > 0 && s->buf[s->len - 1] == '\r')
        s->buf[--s->len] = '\0';
}

static int check(const struct strbuf *s, struct sg_error *e)
{
    if (s->truncated || s->len > SECRET_VALUE_MAX)
        return err_set(e, SG_ERR_INVALID, -E2BIG, "the value is larger than %u KiB",
                       SECRET_VALUE_MAX / 1024);
    if (s->len == 0)
        return err_invalid(e, "the value is empty");
    if (strlen(s->buf) != s->len || strpbrk(s->buf, "\r\n"))
        return err_invalid(
            e, "the value has several lines or a NUL byte: it is put into a header, which "
               "is one line");
    return 0;
}

/* Reads to the end of fd or, if `line`, to the end of the line. */
static int read_fd(int fd, bool line, struct strbuf *ret)
{
    char buf[4096];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0 && !ret->truncated) {
        strbuf_add(ret, buf, (size_t)n);
        if (line && buf[n - 1] == '\n')
            break;
    }
    int r = n < 0 ? -errno : 0;
    explicit_bzero(buf, sizeof(buf));
    return r;
}

static int ask(const char *name, struct strbuf *ret)
{
    struct terminal t;

    interrupt_watch(); /* so that the terminal is restored before we end */
    fprintf(stderr, "Value of %s (it is not shown): ", name);
    terminal_hide(&t, STDIN_FILENO);
    int r = read_fd(STDIN_FILENO, true, ret);
    terminal_restore(&t);
    if (r == -EINTR)
        fputc('\n', stderr);
    return r;
}

int secret_value_read(const char *from_file, const char *name, struct strbuf *ret,
                      struct sg_error *e)
{
    AUTO(close_p) int file = -1;
    int r;

    strbuf_init(ret, SECRET_VALUE_MAX + LINE_ENDS);
    strbuf_reserve(ret);
    if (from_file) {
        file = open(from_file, O_RDONLY | O_CLOEXEC);
        r = file < 0 ? -errno : read_fd(file, false, ret);
    } else {
        r = isatty(STDIN_FILENO) ? ask(name, ret) : read_fd(STDIN_FILENO, false, ret);
    }
    if (r < 0)
        return err_code(e, r, "read the value from %s", from_file ? from_file : "standard input");
    cut_end(ret);
    return check(ret, e);
}
