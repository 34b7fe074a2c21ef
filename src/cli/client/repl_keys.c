#include "cli/client/repl_keys.h"

#include <wchar.h>

#include "lib/base/base.h"

#define PASTE_MAX (1024u * 1024) /* characters */
#define TAB       "    "

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

void repl_keys_bind(EditLine *el)
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
