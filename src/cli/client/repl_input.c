#include "cli/client/repl_input.h"

#include <wchar.h>

#include "cli/client/repl_history.h"
#include "cli/client/repl_keys.h"
#include "cli/client/repl_whole.h"

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

/* ---- from begin to end ----------------------------------------------------------------------- */

int repl_input_open(struct repl_input *in, struct sg_error *e)
{
    HistEvent event;

    in->el = el_init("sandglass", stdin, stdout, stderr);
    in->history = history_init();
    if (!in->el || !in->history)
        return err_set(e, SG_ERR_INTERNAL, -ENOMEM, "cannot set up the line editor");
    history(in->history, &event, H_SETSIZE, REPL_HISTORY_MAX);
    history(in->history, &event, H_SETUNIQUE, 1);
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_SIGNAL, 0); /* repl_watch takes the signals */
    el_set(in->el, EL_HIST, history, in->history);
    el_set(in->el, EL_PROMPT_ESC, prompt_of, PROMPT_ESCAPE);
    el_set(in->el, EL_GETCFN, get_character);
    repl_keys_bind(in->el);
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
    in->history_path = repl_history_path(language);
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
        repl_history_save(in->history, in->history_path);
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
