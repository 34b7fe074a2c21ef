/* Every option of `sandglass run` stands in its manual page and in the shell completion, and the
 * manual has none that does not exist. SG_SOURCE_DIR is the root of the source tree. */
#include "tap.h"

#include <fcntl.h>

#include "base/fd.h"
#include "cli/doctor.h"
#include "cli/run_options.h"

TAP_MAIN

#define TEXT_MAX (1u << 20)

static char *load(const char *path)
{
    char *text = NULL;
    size_t len;

    EXPECT(file_read(AT_FDCWD, path, TEXT_MAX, &text, &len) == 0);
    return text ? text : xstrdup("");
}

/* `word` occurs with no word character or dash on either side. */
static bool has_word(const char *text, const char *word)
{
    static const char part[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t len = strlen(word);

    for (const char *p = text; (p = strstr(p, word)); p += len)
        if ((p == text || !strchr(part, p[-1])) && (!p[len] || !strchr(part, p[len])))
            return true;
    return false;
}

static void expect_word(const char *file, const char *text, const char *word)
{
    bool found = has_word(text, word);

    if (!found)
        printf("# %s does not mention %s\n", file, word);
    EXPECT(found);
}

static void expect_entries(const char *page, const struct cli_syntax *syntax)
{
    AUTO(free_p) char *text = load(page);

    for (size_t i = 0; i < syntax->n_options; i++) {
        const struct cli_option *o = &syntax->options[i];
        char entry[64];

        if (o->letter)
            snprintf(entry, sizeof(entry), "\n*-%c*, *--%s*", o->letter, o->name);
        else
            snprintf(entry, sizeof(entry), "\n*--%s*", o->name);
        if (!strstr(text, entry))
            printf("# no entry for --%s\n", o->name);
        EXPECT(strstr(text, entry) != NULL);
    }
}

TEST(manual_has_every_option)
{
    expect_entries(SG_SOURCE_DIR "/man/sandglass-run.1.scd", &run_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-doctor.1.scd", &doctor_syntax);
}

static bool is_option(const char *name, size_t len)
{
    for (size_t i = 0; i < run_syntax.n_options; i++)
        if (strlen(run_syntax.options[i].name) == len &&
            strncmp(run_syntax.options[i].name, name, len) == 0)
            return true;
    return false;
}

TEST(manual_has_no_other_option)
{
    AUTO(free_p) char *text = load(SG_SOURCE_DIR "/man/sandglass-run.1.scd");
    size_t seen = 0;

    for (const char *p = text; (p = strstr(p, "*--")); seen++) {
        p += strlen("*--");
        size_t len = strcspn(p, "*");

        if (len > 0 && !is_option(p, len)) {
            tap_failures++;
            printf("# the manual has --%.*s\n", (int)len, p);
        }
    }
    EXPECT(seen >= run_syntax.n_options);
}

TEST(completion_has_every_option)
{
    AUTO(free_p) char *text = load(SG_SOURCE_DIR "/completions/sandglass.bash");

    for (size_t i = 0; i < run_syntax.n_options; i++) {
        const struct cli_option *o = &run_syntax.options[i];
        char word[64];

        snprintf(word, sizeof(word), "--%s", o->name);
        expect_word("the completion", text, word);
        snprintf(word, sizeof(word), "-%c", o->letter);
        if (o->letter)
            expect_word("the completion", text, word);
    }
}

TEST(names_and_letters_are_unique)
{
    for (size_t i = 0; i < run_syntax.n_options; i++) {
        for (size_t k = i + 1; k < run_syntax.n_options; k++) {
            const struct cli_option *a = &run_syntax.options[i], *b = &run_syntax.options[k];

            EXPECT(strcmp(a->name, b->name) != 0);
            EXPECT(!a->letter || a->letter != b->letter);
        }
    }
}
