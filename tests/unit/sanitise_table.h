/* The tables in tests/sanitise, read once. */
#pragma once

#include <fcntl.h>

#include "lib/base/fd.h"
#include "lib/sanitise/sanitise.h"
#include "tap.h"

#define TABLE_MAX  1024
#define TABLE_TEXT (1024u * 1024)

struct sanitise_row {
    char *in, *out; /* the same for look-alikes */
    unsigned line;
};

struct sanitise_table {
    char *text;
    struct sanitise_row rows[TABLE_MAX];
    size_t n;
};

/* Takes the broken bars out, and makes ends of lines of the arrows. */
static char *table_field(char *text)
{
    char *to = text;

    for (const char *p = text; *p;) {
        if (strncmp(p, "\xc2\xa6", 2) == 0) {
            p += 2;
        } else if (strncmp(p, "\xe2\x8f\x8e", 3) == 0) {
            *to++ = '\n';
            p += 3;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
    return text;
}

static void table_read(struct sanitise_table *t, const char *name, bool two)
{
    char path[512];
    size_t len;
    unsigned number = 0;

    snprintf(path, sizeof(path), "%s/tests/sanitise/%s", SG_SOURCE_DIR, name);
    t->n = 0;
    EXPECT(file_read(AT_FDCWD, path, TABLE_TEXT, &t->text, &len) == 0);
    for (char *rest = t->text, *line; (line = strsep(&rest, "\n")) && rest;) {
        number++;
        if (*line == '#' || t->n == TABLE_MAX)
            continue;
        char *tab = two ? strchr(line, '\t') : NULL;
        EXPECT(!two || tab);
        if (tab)
            *tab = '\0';
        char *in = table_field(line);
        t->rows[t->n++] = (struct sanitise_row){in, tab ? table_field(tab + 1) : in, number};
    }
}
