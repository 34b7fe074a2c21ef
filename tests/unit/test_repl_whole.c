/* When the prompt runs what was typed, and when it asks for another line. */
#include "tap.h"

#include "cli/client/repl_whole.h"

TAP_MAIN

static void expect(bool whole, const char *language, const char *code, bool together)
{
    bool is = repl_is_whole(language, code, together);

    if (is != whole)
        printf("# %s: not taken as %s:\n# %s\n", language, whole ? "whole" : "unfinished", code);
    EXPECT(is == whole);
}

static void whole(const char *language, const char *code)
{
    expect(true, language, code, false);
}

static void more(const char *language, const char *code)
{
    expect(false, language, code, false);
}

TEST(python_lines)
{
    whole("python", "");
    whole("python", "1 + 1");
    whole("python", "x = {'a': [1, (2, 3)]}");
    whole("python", "if x: y()");
    whole("python", "class A: pass");
    whole("python", "x: int = 1");
    whole("python", "s = 'it is \\' here ['");
    whole("python", "# ([{");
    whole("python", "x = 1 # (:");
    whole("py", "f'{x}' \"#\"");
    whole("python", "x = )"); /* the kernel says what is wrong */
    whole("python", "x = 'never closed");
    whole("python", "!ls (");
    whole("python", "%timeit f(");
    whole("python", "a\nb");
    more("python", "f(");
    more("python", "x = [1,");
    more("python", "x = {'a':");
    more("python", "x = 1 + \\");
    more("python", "x = \"\"\"abc");
    more("python", "x = '''abc\n'\n''");
    more("python", "x = 'joined \\");
    whole("python", "x = 'joined \\\nhere'");
    whole("python", "x = \"\"\"abc\n(\n\"\"\"");
    whole("python", "f(\n1,\n\n2)");
}

TEST(python_blocks_end_with_a_blank_line)
{
    more("python", "def f():");
    more("python", "def f(): # comment");
    more("python", "def f():\n    return 1");
    more("python", "if x:\n  a\nelse:");
    more("python", "@decorator");
    more("python", "def f():\n    g(1,\n2)");
    more("python", "def f():\n    # nothing");
    whole("python", "def f():\n    return 1\n");
    whole("python", "def f():\n    return 1\n    ");
    whole("python", "for i in x:\n    a\nprint(1)");
    more("python", "%%bash\necho 1");
    whole("python", "%%bash\necho (\n");
}

TEST(what_came_in_one_piece_is_whole_at_its_end)
{
    expect(true, "python", "def f():\n    a = 1\n\n    return a", true);
    expect(false, "python", "def f():", true);
    expect(false, "python", "f(1,\n2", true);
    expect(true, "python", "%%bash\necho 1", true);
}

TEST(python_indents_by_itself)
{
    EXPECT(repl_indent("python", "def f():") == 4);
    EXPECT(repl_indent("python", "def f():\n    if x:") == 8);
    EXPECT(repl_indent("python", "def f():\n    a = 1") == 4);
    EXPECT(repl_indent("python", "def f():\n    return 1") == 0);
    EXPECT(repl_indent("python", "def f():\n    returned = 1") == 4);
    EXPECT(repl_indent("python", "f(") == 0);
    EXPECT(repl_indent("python", "x = 1") == 0);
    EXPECT(repl_indent("javascript", "if (x) {") == 0);
}

TEST(javascript)
{
    whole("javascript", "1 + 1");
    whole("js", "i++");
    whole("javascript", "const f = x => x");
    whole("javascript", "// ({");
    whole("javascript", "x /* ( */");
    whole("javascript", "`a ${b} c`");
    whole("javascript", "`a ${ `b ${c}` + '}' }`");
    whole("javascript", "x.match(/[/(]\"/)");
    whole("javascript", "a / b; c / (d)");
    whole("javascript", "return /[{]/");
    whole("javascript", "if (x) {\n}");
    whole("typescript", "const n: number = 6; console.log(n)");
    more("javascript", "function f() {");
    more("javascript", "f(1,");
    more("javascript", "const x =");
    more("javascript", "a &&");
    more("javascript", "f = () =>");
    more("javascript", "`abc");
    more("javascript", "`abc ${ x ");
    more("javascript", "`abc\n${x} ");
    more("javascript", "/* abc");
    more("typescript", "interface A {");
    whole("javascript", "const x =\n");
}

TEST(r_and_java)
{
    whole("r", "x <- c(1, 2)");
    whole("r", "x # (");
    whole("r", "'a\nb'");
    more("r", "x <-");
    more("r", "f <- function(x) {");
    more("r", "x |>");
    more("r", "'a");
    whole("java", "int x = 1;");
    whole("java", "char c = '(';");
    whole("java", "int y = 4 / 2; // (");
    more("java", "class A {");
    more("java", "String s = \"\"\"\nabc");
    whole("java", "String s = \"\"\"\nabc(\n\"\"\"");
}

TEST(bash)
{
    whole("bash", "echo hello");
    whole("bash", "echo if then {");
    whole("bash", "for i in 1 2; do echo $i; done");
    whole("bash", "if true; then echo; fi");
    whole("bash", "case $x in a) echo;; b) ;; esac");
    whole("bash", "f() { echo; }");
    whole("bash", "function f { echo; }");
    whole("bash", "echo $(date) # (");
    whole("bash", "echo $# ${x#(} $((1 << 2))");
    whole("bash", "echo 'a\nb'");
    whole("bash", "cat <<E\n(\nE");
    whole("bash", "cat <<-'E'\nx\n\tE");
    whole("bash", "cat <<< word");
    whole("bash", "A=1 true");
    whole("bash", "echo done fi }");
    more("bash", "for i in 1 2");
    more("bash", "if true; then");
    more("bash", "while read x; do echo");
    more("bash", "case $x in");
    more("bash", "f() {");
    more("bash", "function f {");
    more("bash", "echo 'a");
    more("bash", "echo \"a \\\"");
    more("bash", "echo $(date");
    more("bash", "cat <<E");
    more("bash", "cat <<E\nx\n");
    more("bash", "echo a |");
    more("bash", "true &&");
    more("bash", "echo \\");
}

TEST(other_languages)
{
    whole("julia", "1 + 1");
    more("julia", "f(");
    whole("julia", "f(\n");
    whole("julia", "smile :)");
}

TEST(deep_nesting_ends)
{
    char deep[2048];

    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    more("python", deep);
    more("bash", deep);
}

TEST(commands_of_the_prompt)
{
    EXPECT(repl_is_command(":help"));
    EXPECT(repl_is_command(":save x"));
    EXPECT(!repl_is_command(": > file"));
    EXPECT(!repl_is_command("::"));
    EXPECT(!repl_is_command(""));
    EXPECT(!repl_is_command("a:b"));
}
