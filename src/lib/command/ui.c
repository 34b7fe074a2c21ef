#include "lib/command/ui.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/command/exit_status.h"

#define RED   "\033[1;31m"
#define BOLD  "\033[1m"
#define RESET "\033[0m"

bool ui_has_colour(int fd)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
}

static void print_line(const char *colour, const char *fmt, va_list ap) PRINTF(2, 0);

static void print_line(const char *colour, const char *fmt, va_list ap)
{
    char text[1024];
    bool coloured = ui_has_colour(STDERR_FILENO);

    vsnprintf(text, sizeof(text), fmt, ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    fprintf(stderr, "%ssandglass:%s %s\n", coloured ? colour : "", coloured ? RESET : "", text);
}

void ui_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_line(RED, fmt, ap);
    va_end(ap);
}

void ui_note(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    print_line(BOLD, fmt, ap);
    va_end(ap);
}

int ui_usage(const char *verb, const char *message)
{
    ui_error("%s (see 'sandglass %s --help')", message, verb);
    return CLI_EXIT_USAGE;
}
