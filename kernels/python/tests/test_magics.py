"""Magics, with IPython and without it."""

import os
import tempfile
import unittest

from harness import Kernel, KernelTest, without


class Common(KernelTest):
    """What is the same with and without IPython."""

    def test_command(self):
        self.assertEqual(self.run_cell("!echo hello").out, "hello\n")

    def test_command_in_a_block(self):
        cell = self.run_cell("for i in range(2):\n    if i:\n        !echo n=$i\n    print('p')")
        self.assertEqual(cell.out, "p\nn=1\np\n")

    def test_command_with_values(self):
        cell = self.run_cell("who = 'you'\n!echo $who $HOME '{not a value'")
        self.assertEqual(cell.out, "you /tmp {not a value\n")
        self.assertEqual(self.run_cell("!echo {who.upper()} {1+1}").out, "YOU 2\n")

    def test_command_with_braces_of_its_own(self):
        self.assertEqual(self.run_cell("!echo 'a b' | awk '{print $2}'").out, "b\n")

    def test_command_over_lines(self):
        self.assertEqual(self.run_cell("!echo one \\\n   two\n3").out, "one two\n")

    def test_command_status(self):
        self.run_cell("!exit 3")
        self.assertEqual(self.value("_exit_code"), "3")

    def test_command_error_stream(self):
        self.assertEqual(self.run_cell("!echo oops >&2").err, "oops\n")

    def test_assignment(self):
        self.assertEqual(self.value("lines = !printf 'a\\nb\\n'\nlines"), "['a', 'b']")
        self.assertEqual(self.value("lines.n"), "a\\nb")

    def test_assignment_of_a_magic(self):
        self.assertEqual(self.value("here = %pwd\nhere == __import__('os').getcwd()"), "True")

    def test_command_with_quotes(self):
        self.assertEqual(self.run_cell("!echo it\\'s \"fine\"").out, "it's fine\n")

    def test_no_magic_inside_a_string(self):
        self.assertEqual(self.value("s = '''\n%time\n!ls\n'''\nlen(s)"), "11")
        self.assertEqual(self.value("(10\n%4)"), "2")

    def test_time(self):
        cell = self.run_cell("%time 6 * 7")
        self.assertRegex(cell.out, r"CPU times: user .*\nWall time: ")
        self.assertEqual(cell.text, "42")

    def test_time_assigns(self):
        self.run_cell("%time timed = 5")
        self.assertEqual(self.value("timed"), "5")

    def test_time_cell(self):
        cell = self.run_cell("%%time\nt = 2\nt * 3")
        self.assertIn("Wall time", cell.out)
        self.assertEqual(cell.text, "6")

    def test_time_cell_error_points_to_its_line(self):
        error = self.fails("%%time\na = 1\na / 0", "ZeroDivisionError")
        self.assertIn("line 3\n    a / 0", error["traceback"])

    def test_timeit(self):
        cell = self.run_cell("%timeit -n 5 -r 2 sum(range(10))")
        self.assertRegex(cell.out, r"per loop \(mean ± std\. dev\. of 2 runs, 5 loops each\)")

    def test_timeit_result(self):
        self.assertEqual(self.value("r = %timeit -q -o -n5 -r2 1\nr.loops, r.repeat"), "(5, 2)")

    def test_timeit_cell(self):
        self.assertIn("3 loops", self.run_cell("%%timeit -n 3 -r 1 z = 2\nz + 1").out)

    def test_bash(self):
        cell = self.run_cell("%%bash\nx=$((20 + 22))\necho $x\necho e >&2")
        self.assertEqual((cell.out, cell.err), ("42\n", "e\n"))

    def test_bash_fails(self):
        error = self.fails("%%bash\nexit 4", "CalledProcessError")
        self.assertIn("4", error["value"])

    def test_sh(self):
        self.assertEqual(self.run_cell("%%sh\necho sh").out, "sh\n")

    def test_script(self):
        self.assertEqual(self.run_cell("%%script cat\na\nb").out, "a\nb")
        self.fails("%%script no-such-program\nx", "UsageError")

    def test_env(self):
        self.assertEqual(self.run_cell("%env SG_M=1").out, "env: SG_M=1\n")
        self.assertEqual(self.value("%env SG_M"), "1")
        self.fails("%env NO_SUCH_VARIABLE", "UsageError")

    def test_cd(self):
        self.run_cell("%cd /usr")
        self.assertEqual(self.value("%pwd"), "/usr")
        self.assertEqual(self.run_cell("%cd /tmp").out, "/tmp\n")
        self.assertEqual(self.run_cell("%cd -").out, "/usr\n")
        self.fails("%cd /no/such/folder", "FileNotFoundError")

    def test_ls(self):
        self.assertIn("python3", self.run_cell("%ls /usr/bin/python3").out)

    def test_who(self):
        kernel = self.own()
        kernel.run("apple = 1\npear = 'x'")
        self.assertEqual(kernel.run("%who").out.split(), ["apple", "pear"])
        self.assertIn("str", kernel.run("%whos").out)
        self.assertEqual(kernel.run("%who_ls int").text, "['apple']")

    def test_help(self):
        self.assertIn("number of items", self.run_cell("len?").out)
        self.run_cell("def documented():\n    'the words'\n    return 1")
        self.assertIn("the words", self.run_cell("?documented").out)
        self.assertIn("return 1", self.run_cell("documented??").out)

    def test_writefile(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "f.txt")
            self.assertEqual(self.run_cell(f"%%writefile {path}\nline\n").out, f"Writing {path}\n")
            self.run_cell(f"%%writefile -a {path}\nmore\n")
            with open(path) as file:
                self.assertEqual(file.read(), "line\nmore\n")

    def test_run(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write("import sys\nran = sys.argv[1:]")
            file.flush()
            self.run_cell(f"%run {file.name} a b")
        self.assertEqual(self.value("ran"), "['a', 'b']")

    def test_capture(self):
        self.run_cell("%%capture got\nprint('kept')\n!echo too")
        self.assertEqual(self.value("got.stdout"), "kept\\ntoo\\n")

    def test_shown(self):
        self.assertEqual(self.run_cell("%%html\n<b>x</b>").shown[0]["html"], "<b>x</b>")
        self.assertEqual(self.run_cell("%%markdown\n# t").shown[0]["markdown"], "# t")
        self.assertEqual(self.run_cell("%%latex\n$x$").shown[0]["latex"], "$x$")

    def test_about_looks(self):
        cell = self.run_cell("%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n1")
        self.assertEqual(cell.text, "1")

    def test_unknown(self):
        error = self.fails("%nosuchmagic", "UsageError")
        self.assertIn("%nosuchmagic", error["value"])
        self.assertIn("%time", error["value"])
        self.fails("%%nosuchmagic\nx", "UsageError")

    def test_pip(self):
        self.assertRegex(self.run_cell("%pip --version").out, r"^pip \d")
        self.assertRegex(self.run_cell("pip list").out, "(?i)package")

    def test_error_beside_a_magic(self):
        error = self.fails("%pwd\nx = = 1", "SyntaxError")
        self.assertIn("line 2", error["traceback"])
        error = self.fails("!true\n1/0", "ZeroDivisionError")
        self.assertIn("line 2\n    1/0", error["traceback"])

    def test_history_has_the_cell_as_it_was(self):
        self.run_cell("!true")
        self.assertEqual(self.value("In[-2]"), "!true")

    def test_shell_methods(self):
        self.assertEqual(self.run_cell("get_ipython().system('echo s')").out, "s\n")
        self.assertEqual(self.value("list(get_ipython().getoutput('echo g'))"), "['g']")
        self.assertIn("Wall", self.run_cell("get_ipython().run_cell_magic('time', '', '1')").out)


class WithIPython(Common):
    def test_not_imported_before_it_is_needed(self):
        kernel = self.own()
        kernel.run("%time 1\n!true")
        self.assertEqual(kernel.run("import sys\n'IPython' in sys.modules").text, "False")

    def test_magic_of_ipython(self):
        self.assertIn("function calls", self.run_cell("%prun sum(range(10))").out)

    def test_history_survives_it(self):
        kernel = self.own()
        kernel.run("first = 1\nfirst")
        kernel.run("get_ipython()")
        self.assertEqual(kernel.run("In[1][:5], Out[1], first").text, "('first', 1, 1)")
        self.assertEqual(kernel.run("import sys\nsys.modules['__main__'].__dict__ is globals()").text, "True")

    def test_errors_and_displays_after_it(self):
        kernel = self.own()
        kernel.run("get_ipython()")
        self.assertEqual(kernel.run("1/0").error["name"], "ZeroDivisionError")
        self.assertEqual(kernel.run("display(5)").shown[0]["text"], "5")
        self.assertEqual(kernel.run("from IPython.display import display as d\n"
                                    "d(6)").shown[0]["text"], "6")

    def test_error_in_a_magic_of_ipython(self):
        cell = self.run_cell("%%prun\n1/0")
        self.assertEqual(cell.error["name"], "ZeroDivisionError")
        self.assertNotIn("IPython/core", cell.error["traceback"])

    def test_run_cell(self):
        self.run_cell("get_ipython().run_cell('by_shell = 3')")
        self.assertEqual(self.value("by_shell"), "3")

    def test_own_magic(self):
        kernel = self.own()
        kernel.run("from IPython.core.magic import register_line_magic\n"
                   "get_ipython()\n@register_line_magic\ndef shout(line): return line.upper()")
        self.assertEqual(kernel.run("%shout hello").text, "HELLO")

    def test_one_thread(self):
        kernel = self.own()
        kernel.run("get_ipython()")
        self.assertEqual(kernel.run("import threading\nthreading.active_count()").text, "1")


class WithoutIPython(Common):
    program = without("IPython")

    def test_it_is_hidden(self):
        self.fails("import IPython.core.interactiveshell", "ModuleNotFoundError")

    def test_says_so(self):
        self.assertIn("IPython, which has more, is not installed", self.fails("%prun 1", "UsageError")["value"])

    def test_stand_in(self):
        self.assertEqual(self.value("type(get_ipython()).__name__"), "Standin")
        self.run_cell("get_ipython().push({'pushed': 1})\nget_ipython().ex('pushed += 1')")
        self.assertEqual(self.value("get_ipython().ev('pushed')"), "2")
        self.assertEqual(self.value("get_ipython().run_cell('pushed + 1')"), "3")
        self.assertIn("Wall", self.run_cell("get_ipython().magic('time 1')").out)

    def test_display_classes(self):
        cell = self.run_cell("from IPython.display import HTML, display\ndisplay(HTML('<p>'))")
        self.assertEqual(cell.shown[0]["html"], "<p>")


class WithoutPip(unittest.TestCase):
    def test_says_so(self):
        kernel = Kernel(program=without("pip"))
        self.addCleanup(kernel.close)
        error = kernel.run("%pip install x").error
        self.assertEqual(error["name"], "UsageError")
        self.assertIn("pip is not installed", error["value"])


del Common, KernelTest  # nothing to run by themselves

if __name__ == "__main__":
    unittest.main()
