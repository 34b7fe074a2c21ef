#include "cli/client/repl_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <wchar.h>

#include "cli/client/repl_whole.h"

#define HISTORY_MAX   1000           /* cells */
#define PASTE_MAX     (1024u * 1024) /* characters */
#define TAB           "    "
#define TURN_MS       1000
#define PASTE_ON      "\033[?2004h"
#define PASTE_OFF     "\033[?2004l"
#define PROMPT_COLOUR "\001\033[32m\001"
#define MORE_COLOUR   "\001\033[2m\001"
#define PROMPT_RESET  "\001\033[0m\001"
#define PROMPT_ESCAPE '\001'

static char *prompt_of(EditLine *el)
{
    struct repl_input *in = NULL;

    el_get(el, EL_CLIENTDATA, &in);
    return in->prompt;
}

static void set_prompt(struct repl_input *in, const char *colour, const char *text)
{
    snprintf(in->prompt, sizeof(in->prompt), "%s%s%s ", in->colour ? colour : "", text,
             in->colour ? PROMPT_RESET : "");
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* 1 if the bytes are a whole character, 0 if bytes are missing. Invalid UTF-8 becomes U+FFFD. */
static int decode(struct repl_input *in, wchar_t *ret)
{
    mbstate_t state = {0};
    size_t n = mbrtowc(ret, (const char *)in->bytes, in->n_bytes, &state);

    if (n == (size_t)-2 && in->n_bytes < 4)
        return 0;
    if (n == (size_t)-1 || n == (size_t)-2)
        *ret = 0xfffd;
    in->n_bytes = 0;
    return 1;
}

static void take_turn(struct repl_input *in, EditLine *el, const struct repl_turn *turn)
{
    if (turn->resized)
        el_resize(el);
    if (turn->continued) {
        el_set(el, EL_PREP_TERM, 0); /* a shell has changed the terminal meanwhile; */
        el_set(el, EL_PREP_TERM, 1); /* off and on, or libedit would think that all is set */
        el_set(el, EL_REFRESH);
    }
    if (in->idle(in->arg, turn->input))
        el_set(el, EL_REFRESH);
}

/* Called by libedit for the next character. 1, 0 at the end of input, -1 for ^C or a signal. */
static int get_character(EditLine *el, wchar_t *ret)
{
    struct repl_input *in = NULL;

    el_get(el, EL_CLIENTDATA, &in);
    if (in->indent > 0) {
        in->indent--;
        *ret = L' ';
        return 1;
    }
    for (;;) {
        struct repl_turn turn = repl_watch_turn(in->watch, STDIN_FILENO, TURN_MS);

        if (turn.interrupt || in->watch->ending) {
            in->interrupted = turn.interrupt;
            in->n_bytes = 0;
            return -1;
        }
        take_turn(in, el, &turn);
        if (!turn.input)
            continue;
        ssize_t n = read(STDIN_FILENO, in->bytes + in->n_bytes, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            in->over = true;
            return 0;
        }
        in->n_bytes++;
        if (decode(in, ret))
            return 1;
    }
}

/* ---- pastes ---------------------------------------------------------------------------------- */

/* Takes a paste, which the terminal marks. The text goes into the line as it is, with its line
 * ends: typed ones would end the line. */
static unsigned char paste(EditLine *el, int key UNUSED)
{
    static const wchar_t end[] = L"\033[201~";
    size_t n = 0, end_len = wcslen(end);
    wchar_t *text = malloc((PASTE_MAX + 1) * sizeof(*text));
    bool over = false;

    if (!text)
        return CC_ERROR;
    while (!over && n < PASTE_MAX && el_wgetc(el, &text[n]) == 1) {
        if (text[n] == L'\r')
            text[n] = L'\n';
        n++;
        over = n >= end_len && wmemcmp(text + n - end_len, end, end_len) == 0;
    }
    if (over)
        n -= end_len;
    while (n > 0 && text[n - 1] == L'\n')
        n--; /* drop line ends at its end: the user presses Enter */
    text[n] = L'\0';
    int r = n > 0 ? el_winsertstr(el, text) : 0;
    free(text);
    return r < 0 ? CC_ERROR : CC_REFRESH;
}

static unsigned char tab(EditLine *el, int key UNUSED)
{
    return el_insertstr(el, TAB) < 0 ? CC_ERROR : CC_REFRESH;
}

/* ---- lines of a cell ------------------------------------------------------------------------- */

/* Moves up and down inside the cell. Beyond its first and last line comes history (^P and ^N). */
static unsigned char up(EditLine *el, int key UNUSED)
{
    const LineInfoW *line = el_wline(el);
    const wchar_t *start = line->cursor, *above;

    while (start > line->buffer && start[-1] != L'\n')
        start--;
    if (start == line->buffer) {
        el_push(el, "\020");
        return CC_NORM;
    }
    for (above = start - 1; above > line->buffer && above[-1] != L'\n';)
        above--;
    ptrdiff_t column = line->cursor - start, room = start - 1 - above;
    const wchar_t *to = above + (column < room ? column : room);
    el_cursor(el, (int)(to - line->cursor));
    return CC_REFRESH;
}

static unsigned char down(EditLine *el, int key UNUSED)
{
    const LineInfoW *line = el_wline(el);
    const wchar_t *start = line->cursor, *below = line->cursor, *end;

    while (start > line->buffer && start[-1] != L'\n')
        start--;
    while (below < line->lastchar && *below != L'\n')
        below++;
    if (below == line->lastchar) {
        el_push(el, "\016");
        return CC_NORM;
    }
    for (end = ++below; end < line->lastchar && *end != L'\n';)
        end++;
    ptrdiff_t column = line->cursor - start, room = end - below;
    const wchar_t *to = below + (column < room ? column : room);
    el_cursor(el, (int)(to - line->cursor));
    return CC_REFRESH;
}

static void bind_keys(EditLine *el)
{
    static const struct {
        const char *keys, *name;
    } more[] = {
        {"^R", "em-inc-search-prev"},
        {"\\e[200~", "sg-paste"},
        {"^I", "sg-tab"},
        {"\\e[A", "sg-up"},
        {"\\eOA", "sg-up"},
        {"\\e[B", "sg-down"},
        {"\\eOB", "sg-down"},
        {"\\e[1;5D", "ed-prev-word"},
        {"\\e[1;5C", "em-next-word"},
        {"\\e[3~", "ed-delete-next-char"},
        {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},
        {"\\e[1~", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},
    };

    el_set(el, EL_ADDFN, "sg-paste", "insert pasted text", paste);
    el_set(el, EL_ADDFN, "sg-tab", "indent", tab);
    el_set(el, EL_ADDFN, "sg-up", "line above, or older cell", up);
    el_set(el, EL_ADDFN, "sg-down", "line below, or newer cell", down);
    for (size_t i = 0; i < ARRAY_SIZE(more); i++)
        el_set(el, EL_BIND, more[i].keys, more[i].name, NULL);
}

/* ---- history --------------------------------------------------------------------------------- */

/* Makes each missing directory of the path. */
static void make_directories(char *path)
{
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
}

/* The path of the file that keeps old cells, which only its owner can read; makes its directory.
 * NULL if there is no home directory for it. */
static char *history_path(const char *language)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;

    if (state && state[0] == '/')
        n = asprintf(&path, "%s/sandglass/repl_history-%s", state, language);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.local/state/sandglass/repl_history-%s", home, language);
    if (n < 0)
        return NULL;
    make_directories(path);
    return path;
}

/* Writes a new file and renames it, so that the history is never half written. Failures are silent:
 * history is a convenience. */
static void history_save(History *h, const char *path)
{
    AUTO(free_p) char *temporary = NULL;
    HistEvent event;

    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return;
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return;
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        unlink(temporary);
        return;
    }
    bool written = history(h, &event, H_SAVE_FP, file) >= 0;
    if (fclose(file) != 0 || !written || rename(temporary, path) < 0)
        unlink(temporary);
}

/* ---- from begin to end ----------------------------------------------------------------------- */

int repl_input_open(struct repl_input *in, struct sg_error *e)
{
    HistEvent event;

    in->el = el_init("sandglass", stdin, stdout, stderr);
    in->history = history_init();
    if (!in->el || !in->history)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "cannot set up the line editor");
    history(in->history, &event, H_SETSIZE, HISTORY_MAX);
    history(in->history, &event, H_SETUNIQUE, 1);
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_SIGNAL, 0); /* repl_watch takes the signals */
    el_set(in->el, EL_HIST, history, in->history);
    el_set(in->el, EL_PROMPT_ESC, prompt_of, PROMPT_ESCAPE);
    el_set(in->el, EL_GETCFN, get_character);
    bind_keys(in->el);
    el_source(in->el, NULL); /* ~/.editrc: the user's own key bindings */
    return 0;
}

void repl_input_close(struct repl_input *in)
{
    if (in->history)
        history_end(in->history);
    if (in->el)
        el_end(in->el);
    free(in->history_path);
}

void repl_input_language(struct repl_input *in, const char *language)
{
    HistEvent event;

    free(in->history_path);
    in->history_path = history_path(language);
    history(in->history, &event, H_CLEAR);
    if (in->history_path)
        history(in->history, &event, H_LOAD, in->history_path);
}

static void remember(struct repl_input *in, const char *code)
{
    HistEvent event;

    if (code[strspn(code, " \t\n")] == '\0')
        return;
    history(in->history, &event, H_ENTER, code);
    if (in->history_path)
        history_save(in->history, in->history_path);
}

static const char *get_line(struct repl_input *in)
{
    int n = 0;

    in->interrupted = in->over = false;
    fputs(PASTE_ON, stdout);
    fflush(stdout);
    const char *line = el_gets(in->el, &n);
    fputs(PASTE_OFF, stdout);
    fflush(stdout);
    return line && n > 0 ? line : NULL;
}

static enum repl_input_end stopped(struct repl_input *in)
{
    putchar('\n');
    fflush(stdout);
    el_reset(in->el);
    in->indent = 0;
    return in->interrupted ? REPL_INPUT_CLEARED : REPL_INPUT_OVER;
}

enum repl_input_end repl_input_cell(struct repl_input *in, const char *language, uint64_t count,
                                    struct strbuf *code)
{
    char label[32];
    bool first = true, together;

    snprintf(label, sizeof(label), "In [%llu]:", (unsigned long long)count);
    set_prompt(in, PROMPT_COLOUR, label);
    size_t width = strlen(label);
    do {
        const char *line = get_line(in);

        if (!line)
            return stopped(in);
        size_t len = strlen(line);
        len -= line[len - 1] == '\n';
        together = memchr(line, '\n', len) != NULL;
        if (!first)
            strbuf_addch(code, '\n');
        strbuf_add(code, line, len);
        if (first && repl_is_command(code->buf))
            break; /* a command of the prompt is always one line */
        first = false;
        snprintf(label, sizeof(label), "%*s", (int)width, "...:");
        set_prompt(in, MORE_COLOUR, label);
        in->indent = repl_indent(language, code->buf);
    } while (!code->truncated && !repl_is_whole(language, code->buf, together));
    in->indent = 0;
    while (code->len > 0 && strchr(" \t\n", code->buf[code->len - 1]))
        code->buf[--code->len] = '\0';
    remember(in, code->buf);
    return REPL_INPUT_CELL;
}
