/* The table of languages. */
#include "tap.h"

#include <sandglass.h>

#include "lib/base/languages.h"

TAP_MAIN

TEST(the_rows_are_in_order)
{
    for (unsigned i = 0; i < SG_LANGUAGE_MAX_; i++)
        EXPECT_STR(sg_language_name((enum sg_language)i), languages[i].name);
    for (size_t i = 0; i < n_languages; i++)
        EXPECT((i < n_languages_with_program) == (languages[i].program[0] != NULL));
}

TEST(the_texts_have_the_names_of_the_rows)
{
    const char *json = LANGUAGES_JSON, *help = LANGUAGES_HELP;
    char names[LANGUAGE_NAMES_MAX];

    for (size_t i = 0; i < n_languages_with_program; i++) {
        json = json ? strstr(json, languages[i].name) : NULL;
        EXPECT(json);
    }
    for (size_t i = 0; i < SG_LANGUAGE_MAX_; i++)
        EXPECT(strstr(help, languages[i].name));
    EXPECT_STR(language_names(n_languages_with_program, names),
               "python, javascript, typescript, bash or sh");
    EXPECT_STR(language_names(SG_LANGUAGE_MAX_, names), "python, javascript, typescript or bash");
}

TEST(names)
{
    EXPECT_STR(language_full_name(""), "python");
    EXPECT_STR(language_full_name("ts"), "typescript");
    EXPECT_STR(language_full_name("sh"), "bash");
    EXPECT_STR(language_full_name("julia"), "julia");
    EXPECT(language_find("r") && !language_find("js") && !language_find(""));
}

TEST(suffixes)
{
    EXPECT(language_has_suffix(&languages[SG_JAVASCRIPT], "a.b/c.mjs"));
    EXPECT(!language_has_suffix(&languages[SG_JAVASCRIPT], "a.mjs/c"));
    EXPECT(!language_has_suffix(&languages[SG_JAVASCRIPT], "c."));
    EXPECT(!language_has_suffix(&languages[SG_JAVASCRIPT], "c.mj"));
    EXPECT(!language_has_suffix(language_find("r"), "c."));
}
