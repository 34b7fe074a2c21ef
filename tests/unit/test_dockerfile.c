/* What a Dockerfile becomes: steps of E2B's build API, or an error that names its line. */
#include "tap.h"

#include "cli/client/recipe.h"

TAP_MAIN

static struct recipe recipe;

static int read_with(const char *text, const char *const *args, size_t n, const char **unused,
                     struct sg_error *e)
{
    return recipe_read(text, args, n, &recipe, unused, e);
}

/* The steps after "USER root, WORKDIR /", as JSON: [["RUN","make"], ...]. */
static char *steps_of(const char *text, const char *const *args, size_t n)
{
    struct sg_error e = {0};
    const char *unused;

    if (read_with(text, args, n, &unused, &e) < 0) {
        printf("# %s\n", e.message);
        return xstrdup("");
    }
    json_t *list = json_array();
    for (size_t i = 2; i < json_array_size(recipe.steps); i++) {
        json_t *step = json_array_get(recipe.steps, i), *row = json_array();

        json_array_append(row, json_object_get(step, "type"));
        json_array_extend(row, json_object_get(step, "args"));
        json_array_append_new(list, row);
    }
    char *out = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return out;
}

static void expect_steps(const char *text, const char *steps)
{
    AUTO(free_p) char *got = steps_of(text, NULL, 0);

    EXPECT_STR(got, steps);
    recipe_done(&recipe);
}

static void expect_wrong(const char *text, const char *words)
{
    struct sg_error e = {0};
    const char *unused;

    EXPECT(read_with(text, NULL, 0, &unused, &e) < 0);
    if (!strstr(e.message, words))
        printf("# '%s' does not say '%s'\n", e.message, words);
    EXPECT(strstr(e.message, words) != NULL);
}

#define REST "[\"USER\",\"user\"],[\"WORKDIR\",\"/home/user\"]]"

TEST(a_plain_file)
{
    expect_steps("FROM debian:12\nRUN make\n", "[[\"RUN\",\"make\"]," REST);
    expect_steps("# a comment\n\nfrom debian:12 as one\n  run  make  \r\n",
                 "[[\"RUN\",\"make\"]," REST);
    expect_steps("FROM a\nUSER bob\nWORKDIR /srv", "[[\"USER\",\"bob\"],[\"WORKDIR\",\"/srv\"]]");
}

TEST(begins_as_root_in_the_root_directory)
{
    AUTO(free_p) char *rest = steps_of("FROM a:1\n", NULL, 0);

    EXPECT_STR(rest, "[" REST);
    EXPECT_STR(recipe.from, "a:1");
    EXPECT_STR(json_string_value(
                   json_array_get(json_object_get(json_array_get(recipe.steps, 0), "args"), 0)),
               "root");
    EXPECT(recipe.n_vertices == 1 && recipe.of_step[0] == 0 && recipe.of_step[2] == 1);
    recipe_done(&recipe);
}

TEST(lines_go_on)
{
    expect_steps("FROM a\nRUN one && \\\n  # a comment\n\n  two \\  \n  three\n",
                 "[[\"RUN\",\"one &&   two   three\"]," REST);
    expect_wrong("FROM a\nRUN one \\\n two\nFROB x\n", "line 4: unknown instruction 'FROB'");
    expect_wrong("FROM a\nENV A=\xe9 B=1\n", "line 2: ENV has a word that is not UTF-8");
    expect_wrong(
        "FROM ${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-"
        "${A:-${A:-x}}}}}}}}}}}}}}}}}}\n",
        "variables in more than 16 others");
    expect_wrong("# escape=`\nFROM a\n", "line 1: another escape character");
}

TEST(forms_of_a_command)
{
    expect_steps("FROM a\nRUN [\"printf\", \"%s\", \"it's\"]\n",
                 "[[\"RUN\",\"printf %s 'it'\\\\''s'\"]," REST);
    expect_steps("FROM a\nSHELL [\"/bin/bash\", \"-o\", \"pipefail\", \"-c\"]\nRUN a | b\n",
                 "[[\"RUN\",\"/bin/bash -o pipefail -c 'a | b'\"]," REST);
    expect_steps("FROM a\nRUN [ -f x ]\n", "[[\"RUN\",\"[ -f x ]\"]," REST);
}

TEST(heredocs)
{
    expect_steps("FROM a\nRUN <<EOF\none\n  two $x\nEOF\nRUN three\n",
                 "[[\"RUN\",\"one\\n  two $x\\n\"],[\"RUN\",\"three\"]," REST);
    expect_steps("FROM a\nRUN python3 - <<-'PY' && more\n\tprint(1)\n\tPY\n",
                 "[[\"RUN\",\"python3 - <<-'PY' && more\\nprint(1)\\nPY\"]," REST);
    expect_steps("FROM a\nRUN grep x <<< \"$y\"\n", "[[\"RUN\",\"grep x <<< \\\"$y\\\"\"]," REST);
    expect_steps("FROM a\nRUN echo 'a << EOF' \"<<EOF\"\n",
                 "[[\"RUN\",\"echo 'a << EOF' \\\"<<EOF\\\"\"]," REST);
    expect_wrong("FROM a\nRUN <<EOF\none\n", "line 2: no line 'EOF'");
    expect_wrong("FROM a\nRUN <<EOF\n#!/usr/bin/perl\nEOF\n", "line 2: a script with");
}

TEST(variables)
{
    expect_steps("FROM a\nENV A=1 B=\"two words\" C='$A'\n",
                 "[[\"ENV\",\"A\",\"1\",\"B\",\"two words\",\"C\",\"\\\\$A\"]," REST);
    expect_steps("FROM a\nENV OLD the rest of it\n", "[[\"ENV\",\"OLD\",\"the rest of it\"]," REST);
    expect_steps("FROM a\nENV PATH=/opt/bin:$PATH X=${X:-none}\n",
                 "[[\"ENV\",\"PATH\",\"/opt/bin:${PATH}\",\"X\",\"none\"]," REST);
    expect_steps("FROM a\nENV D=/srv\nWORKDIR $D/${E:-app}\nUSER ${U:-bob}\n",
                 "[[\"ENV\",\"D\",\"/srv\"],[\"WORKDIR\",\"/srv/app\"],[\"USER\",\"bob\"]]");
    expect_steps("FROM a\nENV A=1\nENV B=${A:+yes}${Q:+no}\n",
                 "[[\"ENV\",\"A\",\"1\"],[\"ENV\",\"B\",\"yes\"]," REST);
    expect_wrong("FROM a\nENV A\n", "line 2: ENV A has no value");
    expect_wrong("FROM a\nENV A=1 B\n", "line 2: ENV: 'B' is not NAME=VALUE");
    expect_wrong("FROM a\nENV A=\"1\n", "line 2: ENV has a quote");
    expect_wrong("FROM a\nWORKDIR ${A:?no}\n", "line 2: '${A:?no}' is not supported");
}

TEST(arguments_of_the_build)
{
    static const char *const given[] = {"V=2", "NEVER=1"};
    AUTO(free_p)
    char *steps = steps_of("ARG V=1\nFROM a:$V\nARG V\nARG W=w\\ x\nRUN make\n"
                           "ENV W=e\nRUN again\nENV K=$V\n",
                           given, 2);
    struct sg_error e = {0};
    const char *unused;

    EXPECT_STR(steps, "[[\"RUN\",\"export V=2 W='w x'\\nmake\"],[\"ENV\",\"W\",\"e\"],"
                      "[\"RUN\",\"export V=2\\nagain\"],[\"ENV\",\"K\",\"2\"]," REST);
    EXPECT_STR(recipe.from, "a:2");
    recipe_done(&recipe);
    EXPECT(read_with("FROM a\nARG V\n", given, 2, &unused, &e) == 0);
    EXPECT_STR(unused, "NEVER=1");
    recipe_done(&recipe);
    expect_wrong("FROM a\nARG TARGETARCH\n", "line 2: ARG TARGETARCH is not set here");
}

TEST(copies)
{
    expect_steps("FROM a\nCOPY --chown=bob:staff --chmod=755 --link a b /c/\n",
                 "[[\"COPY\",\"\",\"/c/\",\"bob:staff\",\"755\"]," REST);
    expect_steps("FROM a\nCOPY [\"a b\", \"/c\"]\n", "[[\"COPY\",\"\",\"/c\",\"root\",\"\"]," REST);
    free(
        steps_of("FROM a\nENV N=x\nCOPY <<EOF /c\nhello $N \\$N\nEOF\nADD one two /d/\n", NULL, 0));
    EXPECT(recipe.n_copies == 2 && recipe.copies[1].add && recipe.copies[1].line == 6);
    EXPECT_STR(recipe.copies[0].text, "hello x $N\n");
    EXPECT(json_array_size(recipe.copies[1].sources) == 2);
    recipe_done(&recipe);
    expect_wrong("FROM a\nCOPY --from=x a b\n", "line 2: COPY --from=x is not supported");
    expect_wrong("FROM a\nCOPY a b c\n", "line 2: the destination 'c'");
    expect_wrong("FROM a\nCOPY a\n", "line 2: COPY takes sources");
    expect_wrong("FROM a\nADD https://a.test/x /x\n", "line 2: ADD of an address");
    expect_wrong("FROM a\nCOPY --chmod=u+x a b\n", "is not an octal number");
}

static void expect_start(const char *text, const char *start)
{
    free(steps_of(text, NULL, 0));
    EXPECT_STR(recipe.start ? recipe.start : "", start);
    recipe_done(&recipe);
}

TEST(what_is_started)
{
    expect_start("FROM a\nCMD [\"a\", \"b c\"]\n", "a 'b c'");
    expect_start("FROM a\nCMD one\nCMD two > three\n", "two > three");
    expect_start("FROM a\nENTRYPOINT [\"e\"]\nCMD [\"c\"]\n", "e c");
    expect_start("FROM a\nENTRYPOINT e x\nCMD [\"c\"]\n", "e x");
    expect_start("FROM a\nENTRYPOINT [\"e\"]\nCMD c d\n", "e /bin/sh -c 'c d'");
    expect_start("FROM a\n", "");
}

TEST(what_is_not_supported_names_its_line)
{
    expect_wrong("", "no FROM");
    expect_wrong("RUN x\nFROM a\n", "line 1: RUN stands before FROM");
    expect_wrong("FROM a\nRUN x\nFROM b\n", "line 3: a second FROM");
    expect_wrong("FROM a b\n", "line 1: FROM takes an image");
    expect_wrong("FROM --platform=linux/arm64 a\n", "line 1: FROM --platform=linux/arm64");
    expect_wrong("FROM a\nRUN --mount=type=cache,target=/x make\n", "line 2: RUN --mount");
    expect_wrong("FROM a\nONBUILD RUN x\n", "line 2: ONBUILD is not supported");
    expect_wrong("FROM a\nUSER a:b\n", "line 2: USER with a group");
}

TEST(what_has_no_meaning_is_told)
{
    AUTO(free_p) char *steps = steps_of("FROM a\nEXPOSE 80\nLABEL a=b\nVOLUME /x\n", NULL, 0);

    EXPECT_STR(steps, "[" REST);
    EXPECT(json_array_size(recipe.left_out) == 3);
    recipe_done(&recipe);
}
