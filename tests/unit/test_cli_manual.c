/* Every option of a verb stands in its manual page and in the shell completion, and the manual has
 * none that does not exist. SG_SOURCE_DIR is the root of the source tree. */
#include "tap.h"

#include <fcntl.h>

#include "lib/base/fd.h"
#include "cli/local/acp_options.h"
#include "cli/local/doctor.h"
#include "cli/local/drain.h"
#include "cli/local/run_options.h"
#include "cli/client/client.h"
#include "front/main/backup.h"
#include "front/main/world.h"

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

static const char *page_of(const struct client_verb *verb)
{
    static char path[256];

    snprintf(path, sizeof(path), SG_SOURCE_DIR "/man/sandglass-%s.1.scd", verb->name);
    return path;
}

TEST(manual_has_every_option)
{
    expect_entries(SG_SOURCE_DIR "/man/sandglass-run.1.scd", &run_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-acp.1.scd", &acp_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-doctor.1.scd", &doctor_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-backup.1.scd", &backup_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-restore.1.scd", &restore_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-drain.1.scd", &drain_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-world.1.scd", &world_import_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-world.1.scd", &world_pull_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-world.1.scd", &world_ls_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-world.1.scd", &world_rm_syntax);
    expect_entries(SG_SOURCE_DIR "/man/sandglass-world.1.scd", &world_gc_syntax);
    for (size_t i = 0; i < client_n_verbs; i++)
        expect_entries(page_of(client_verbs[i]), client_verbs[i]->syntax);
}

static bool is_option(const struct cli_syntax *syntax, const char *name, size_t len)
{
    for (size_t i = 0; i < syntax->n_options; i++)
        if (strlen(syntax->options[i].name) == len &&
            strncmp(syntax->options[i].name, name, len) == 0)
            return true;
    return false;
}

static void expect_no_other(const char *page, const struct cli_syntax *syntax)
{
    AUTO(free_p) char *text = load(page);
    size_t seen = 0;

    for (const char *p = text; (p = strstr(p, "*--")); seen++) {
        p += strlen("*--");
        size_t len = strcspn(p, "*");

        if (len > 0 && !is_option(syntax, p, len)) {
            tap_failures++;
            printf("# %s has --%.*s\n", page, (int)len, p);
        }
    }
    EXPECT(seen >= syntax->n_options);
}

TEST(manual_has_no_other_option)
{
    expect_no_other(SG_SOURCE_DIR "/man/sandglass-run.1.scd", &run_syntax);
    expect_no_other(SG_SOURCE_DIR "/man/sandglass-acp.1.scd", &acp_syntax);
    expect_no_other(SG_SOURCE_DIR "/man/sandglass-backup.1.scd", &backup_syntax);
    expect_no_other(SG_SOURCE_DIR "/man/sandglass-restore.1.scd", &restore_syntax);
    for (size_t i = 0; i < client_n_verbs; i++)
        expect_no_other(page_of(client_verbs[i]), client_verbs[i]->syntax);
}

static void expect_completed(const char *what, const char *text, const struct cli_syntax *syntax)
{
    for (size_t i = 0; i < syntax->n_options; i++) {
        const struct cli_option *o = &syntax->options[i];
        char word[64];

        snprintf(word, sizeof(word), "--%s", o->name);
        expect_word(what, text, word);
        snprintf(word, sizeof(word), "-%c", o->letter);
        if (o->letter)
            expect_word(what, text, word);
    }
}

/* The line of the completion that lists a verb's own options, with those of all verbs. */
static char *options_line(const char *text, const char *verb)
{
    const char *shared = strstr(text, "options=\"");
    char start[64], *both = NULL;

    snprintf(start, sizeof(start), "\n    %s) options+=", verb);
    const char *own = strstr(text, start);
    EXPECT(own && shared);
    if (!own || !shared)
        return xstrdup("");
    own++;
    if (asprintf(&both, "%.*s\n%.*s", (int)strcspn(own, "\n"), own, (int)strcspn(shared, "\n"),
                 shared) < 0)
        return xstrdup("");
    return both;
}

TEST(completion_has_every_option)
{
    AUTO(free_p) char *text = load(SG_SOURCE_DIR "/completions/sandglass.bash");

    expect_completed("the completion", text, &run_syntax);
    expect_completed("the completion", text, &acp_syntax);
    expect_completed("the completion", text, &backup_syntax);
    expect_completed("the completion", text, &restore_syntax);
    expect_completed("the completion", text, &world_import_syntax);
    expect_completed("the completion", text, &world_pull_syntax);
    expect_completed("the completion", text, &world_ls_syntax);
    expect_completed("the completion", text, &world_rm_syntax);
    expect_completed("the completion", text, &world_gc_syntax);
    for (size_t i = 0; i < client_n_verbs; i++) {
        AUTO(free_p) char *line = options_line(text, client_verbs[i]->name);

        expect_completed(client_verbs[i]->name, line, client_verbs[i]->syntax);
    }
}

static void expect_unique(const struct cli_syntax *syntax)
{
    for (size_t i = 0; i < syntax->n_options; i++) {
        for (size_t k = i + 1; k < syntax->n_options; k++) {
            const struct cli_option *a = &syntax->options[i], *b = &syntax->options[k];

            EXPECT(strcmp(a->name, b->name) != 0);
            EXPECT(!a->letter || a->letter != b->letter);
        }
    }
}

TEST(names_and_letters_are_unique)
{
    expect_unique(&run_syntax);
    expect_unique(&acp_syntax);
    for (size_t i = 0; i < client_n_verbs; i++)
        expect_unique(client_verbs[i]->syntax);
}
