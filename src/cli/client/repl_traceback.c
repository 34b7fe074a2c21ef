#include "cli/client/repl_traceback.h"

#define RED   "\033[1;31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define DIM   "\033[2m"
#define RESET "\033[0m"

static void add_in(struct strbuf *out, const char *colour, const char *text, size_t len)
{
    strbuf_addstr(out, colour);
    strbuf_add(out, text, len);
    strbuf_addstr(out, RESET);
}

/* Colours a place such as `File "x.py", line 3, in f` or `Cell In[1], line 3`: the file in one
 * colour, the line number in another. False if the line is no place. */
static bool add_place(struct strbuf *out, const char *line, size_t len)
{
    static const char *const begins[] = {"File ", "Cell "};
    size_t blanks = strspn(line, " ");
    const char *number = memmem(line, len, ", line ", 7);
    bool is_place = false;

    for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
        is_place |= len - blanks > 5 && strncmp(line + blanks, begins[i], 5) == 0;
    if (blanks > len || !is_place || !number)
        return false;
    size_t before = (size_t)(number - line);
    strbuf_add(out, line, blanks + 5);
    add_in(out, CYAN, line + blanks + 5, before - blanks - 5);
    strbuf_addstr(out, ", line ");
    number += strlen(", line ");
    size_t digits = strspn(number, "0123456789");
    add_in(out, GREEN, number, digits);
    strbuf_add(out, number + digits, len - (size_t)(number + digits - line));
    return true;
}

static void add_line(struct strbuf *out, const char *line, size_t len, const char *name)
{
    size_t blanks = strspn(line, " "), arrow = strspn(line, "-"), n = strlen(name);

    if (blanks > len)
        blanks = len;
    if (add_place(out, line, len))
        return;
    if (n > 0 && n <= len && strncmp(line, name, n) == 0) {
        add_in(out, RED, line, n);
        strbuf_add(out, line + n, len - n);
    } else if (len - blanks > 3 && strncmp(line + blanks, "at ", 3) == 0) {
        add_in(out, DIM, line, len);
    } else if (arrow >= 2 && arrow < len && line[arrow] == '>') {
        add_in(out, GREEN, line, arrow + 1);
        strbuf_add(out, line + arrow + 1, len - arrow - 1);
    } else {
        strbuf_add(out, line, len);
    }
}

void repl_traceback(struct strbuf *out, const char *text, const char *name, bool colour)
{
    size_t len = strlen(text);

    while (len > 0 && text[len - 1] == '\n')
        len--;
    for (const char *line = text, *end = text + len; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop ? stop : end) - line);

        if (colour)
            add_line(out, line, n, name);
        else
            strbuf_add(out, line, n);
        strbuf_addch(out, '\n');
        line += n + 1;
    }
}
