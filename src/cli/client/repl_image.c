#include "cli/client/repl_image.h"

#include <fcntl.h>
#include <poll.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/command/terminal.h"

#define KITTY_PIECE   4096
#define ANSWER_MS     300
#define ANSWER_MAX    64
#define FILES_MAX     10000
#define NS_PER_MS     1000000ull
#define SIXEL_FEATURE 4

/* ---- which way ------------------------------------------------------------------------------- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

static bool is_value(const char *name, const char *value)
{
    const char *has = getenv(name);

    return has && strcmp(has, value) == 0;
}

bool repl_graphics_in_multiplexer(void)
{
    const char *term = getenv("TERM");

    return is_set("TMUX") || is_set("STY") ||
           (term && (strncmp(term, "tmux", 4) == 0 || strncmp(term, "screen", 6) == 0));
}

enum repl_graphics repl_graphics_of_environment(void)
{
    static const char *const iterm[] = {"iTerm.app", "mintty", "vscode"};

    if (repl_graphics_in_multiplexer())
        return REPL_GRAPHICS_NONE;
    if (is_set("KITTY_WINDOW_ID") || is_value("TERM", "xterm-kitty") ||
        is_value("TERM", "xterm-ghostty") || is_value("TERM_PROGRAM", "ghostty") ||
        is_value("TERM_PROGRAM", "WezTerm"))
        return REPL_GRAPHICS_KITTY;
    for (size_t i = 0; i < ARRAY_SIZE(iterm); i++)
        if (is_value("TERM_PROGRAM", iterm[i]))
            return REPL_GRAPHICS_ITERM;
    return REPL_GRAPHICS_NONE;
}

bool repl_graphics_has_sixel(const char *answer)
{
    const char *p = strstr(answer, "\033[?");

    if (!p || !strchr(p, 'c'))
        return false;
    p += strlen("\033[?");
    p += strcspn(p, ";c"); /* skip the first number: the kind of terminal */
    while (*p == ';') {
        char *end;

        if (strtol(p + 1, &end, 10) == SIXEL_FEATURE && (*end == ';' || *end == 'c'))
            return true;
        p = end == p + 1 ? p + 1 : end;
    }
    return false;
}

bool repl_graphics_ask_sixel(int in, int out)
{
    AUTO(terminal_restore) struct terminal terminal = {.fd = -1};
    uint64_t deadline = clock_ns() + ANSWER_MS * NS_PER_MS;
    char answer[ANSWER_MAX + 1];
    size_t n = 0;

    terminal_raw(&terminal, in);
    if (terminal.fd < 0 || fd_write_all(out, "\033[c", 3) < 0)
        return false;
    while (n < ANSWER_MAX && !memchr(answer, 'c', n)) {
        struct pollfd p = {.fd = in, .events = POLLIN};

        if (poll(&p, 1, clock_poll_ms(deadline)) <= 0)
            break;
        ssize_t got = read(in, answer + n, 1); /* byte by byte: what follows is the user's typing */
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    answer[n] = '\0';
    return repl_graphics_has_sixel(answer);
}

/* ---- sequences ------------------------------------------------------------------------------- */

static bool is_base64(const char *text, size_t len)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

    return len > 0 && strspn(text, alphabet) >= len;
}

/* Copies base64 without line ends, which some encoders insert. */
static int plain_base64(struct strbuf *out, const char *base64, size_t len)
{
    strbuf_init(out, len);
    for (size_t i = 0; i < len; i++)
        if (base64[i] != '\n' && base64[i] != '\r')
            strbuf_addch(out, base64[i]);
    return is_base64(out->buf, out->len) ? 0 : -EINVAL;
}

int repl_kitty_encode(struct strbuf *out, const char *base64, size_t len)
{
    AUTO(strbuf_done) struct strbuf plain = {0};

    if (plain_base64(&plain, base64, len) < 0)
        return -EINVAL;
    for (size_t at = 0; at < plain.len; at += KITTY_PIECE) {
        size_t piece = plain.len - at < KITTY_PIECE ? plain.len - at : KITTY_PIECE;

        /* a=T: show it, f=100: PNG, q=2: no answers, m: whether there is more */
        strbuf_addf(out, "\033_G%sm=%d;", at == 0 ? "a=T,f=100,q=2," : "", at + piece < plain.len);
        strbuf_add(out, plain.buf + at, piece);
        strbuf_addstr(out, "\033\\");
    }
    strbuf_addch(out, '\n');
    return 0;
}

int repl_iterm_encode(struct strbuf *out, const char *base64, size_t len)
{
    AUTO(strbuf_done) struct strbuf plain = {0};

    if (plain_base64(&plain, base64, len) < 0)
        return -EINVAL;
    strbuf_addstr(out, "\033]1337;File=inline=1:");
    strbuf_add(out, plain.buf, plain.len);
    strbuf_addstr(out, "\a\n");
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Creates a file with the first number that is free. Files that exist are never touched. */
static int create(const char *dir, const char *suffix, char **ret)
{
    for (unsigned i = 1; i <= FILES_MAX; i++) {
        AUTO(free_p) char *name = NULL;

        if (asprintf(&name, "%s/sandglass-%u.%s", dir, i, suffix) < 0)
            return -ENOMEM;
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0) {
            *ret = steal_ptr(&name);
            return fd;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

int repl_image_save(const void *data, size_t len, const char *suffix, char **ret,
                    struct sg_error *e)
{
    const char *elsewhere = getenv("TMPDIR");
    AUTO(free_p) char *name = NULL;
    AUTO(close_p) int fd = create(".", suffix, &name);

    if (fd < 0)
        fd = create(elsewhere && *elsewhere ? elsewhere : "/tmp", suffix, &name);
    if (fd < 0)
        return err_code(e, fd, "cannot save the picture");
    int r = fd_write_all(fd, data, len);
    if (r < 0) {
        unlink(name);
        return err_code(e, r, "cannot save the picture as %.200s", name);
    }
    *ret = steal_ptr(&name);
    return 0;
}
