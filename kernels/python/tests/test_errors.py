"""Errors: the traceback points into the cell, and shows nothing of the kernel."""

import unittest

from harness import KERNEL, KernelTest


class Errors(KernelTest):
    def traceback(self, code, name):
        text = self.fails(code, name)["traceback"]
        self.assertNotIn("_sandglass", text)
        self.assertNotIn(KERNEL, text)
        self.assertNotIn("\x1b", text)
        return text

    def test_points_into_the_cell(self):
        text = self.traceback("a = 1\nb = a / 0\n", "ZeroDivisionError")
        number = self.kernel.number
        expected = [
            "Traceback (most recent call last):",
            f"  Cell In[{number}], line 2",
            "    b = a / 0",
            "        ~~^~~",
            "ZeroDivisionError: division by zero",
        ]
        self.assertEqual(text.split("\n"), expected)

    def test_fields(self):
        error = self.fails("raise KeyError('k')", "KeyError")
        self.assertEqual(error["value"], "'k'")

    def test_function_of_an_earlier_cell(self):
        self.run_cell("def earlier():\n    raise ValueError('deep')")
        first = self.kernel.number
        text = self.traceback("earlier()", "ValueError")
        self.assertIn(f"Cell In[{first}], line 2, in earlier\n    raise ValueError('deep')", text)
        self.assertIn(f"Cell In[{first + 1}], line 1\n    earlier()", text)

    def test_library_frames_are_shown(self):
        text = self.traceback("import json\njson.loads('{')", "JSONDecodeError")
        self.assertIn("json/decoder.py", text)

    def test_syntax_error(self):
        text = self.traceback("x = 1\ny = = 2", "SyntaxError")
        number = self.kernel.number
        self.assertEqual(
            text, f"  Cell In[{number}], line 2\n    y = = 2\n        ^\n"
                  f"SyntaxError: invalid syntax"
        )

    def test_indentation_error(self):
        self.assertIn("line 2", self.traceback("if 1:\nx = 1", "IndentationError"))

    def test_unclosed(self):
        self.assertIn("was never closed", self.traceback("f(1,\n", "SyntaxError"))

    def test_chain(self):
        text = self.traceback(
            "try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e", "KeyError"
        )
        self.assertIn("direct cause", text)
        self.assertLess(text.index("ZeroDivisionError"), text.index("KeyError"))

    def test_context(self):
        text = self.traceback("try:\n    1/0\nexcept Exception:\n    nothing", "NameError")
        self.assertIn("During handling", text)

    def test_chain_without_end(self):
        text = self.traceback(
            "e = None\nfor i in range(5000):\n    n = ValueError(i)\n    n.__cause__ = e\n"
            "    e = n\nraise e",
            "ValueError",
        )
        self.assertLess(len(text), 20000)

    def test_circular_chain(self):
        self.traceback("a = ValueError(1)\nb = ValueError(2)\na.__cause__ = b\nb.__cause__ = a\n"
                       "raise a",
                       "ValueError")

    def test_group(self):
        text = self.traceback(
            "def f(): 1/0\ntry:\n    f()\nexcept Exception as e:\n"
            "    raise ExceptionGroup('several', [e, ExceptionGroup('inner', [KeyError(1)])])",
            "ExceptionGroup",
        )
        for part in ("several (2 sub-exceptions)", "ZeroDivisionError", "inner", "KeyError", "| "):
            self.assertIn(part, text)

    def test_notes(self):
        text = self.traceback("e = ValueError('x')\ne.add_note('remember')\nraise e", "ValueError")
        self.assertIn("remember", text)

    def test_recursion(self):
        text = self.traceback("def f(): return f()\nf()", "RecursionError")
        self.assertLess(text.count("\n"), 60)
        self.assertIn("repeated", text)

    def test_mutual_recursion(self):
        code = "def f(): return g()\ndef g(): return f()\nf()"
        text = self.traceback(code, "RecursionError")
        self.assertLess(text.count("\n"), 200)
        self.assertIn("frames left out", text)

    def test_broken_str(self):
        error = self.fails("class E(Exception):\n    def __str__(self): 1/0\nraise E", "E")
        self.assertIn("failed", error["value"])
        self.assertIn("E: ", error["traceback"])

    def test_str_that_exits(self):
        self.fails("class E(Exception):\n    def __str__(self): exit(1)\nraise E", "E")

    def test_str_that_returns_no_text(self):
        self.fails("class E(Exception):\n    def __str__(self): return 5\nraise E", "E")

    def test_base_exception(self):
        self.fails("class Odd(BaseException): pass\nraise Odd('x')", "Odd")

    def test_system_exit(self):
        for code in ("exit()", "quit(3)", "import sys; sys.exit('bye')", "raise SystemExit"):
            self.fails(code, "SystemExit")
        self.assertEqual(self.value("'here'"), "here")

    def test_low_recursion_limit(self):
        kernel = self.own()
        kernel.run("import sys; sys.setrecursionlimit(60)")
        self.assertEqual(kernel.run("1/0").error["name"], "ZeroDivisionError")
        self.assertEqual(kernel.run("2").text, "2")
        self.assertEqual(kernel.run("sys.getrecursionlimit()").text, "60")

    def test_surrogates_in_an_error(self):
        error = self.fails("raise ValueError('\\ud800')", "ValueError")
        self.assertIn("\\ud800", error["value"])

    def test_await_shows_only_the_cell(self):
        text = self.traceback("import asyncio\nawait asyncio.sleep(0)\n1/0", "ZeroDivisionError")
        self.assertNotIn("base_events", text)
        self.assertIn("line 3", text)

    def test_inspect_finds_the_source(self):
        self.run_cell("def shown():\n    return 'source'")
        self.assertIn("return", self.value("import inspect\ninspect.getsource(shown)"))

    def test_print_exc(self):
        cell = self.run_cell("import traceback\ntry:\n    1/0\nexcept Exception:\n"
                             "    traceback.print_exc()")
        self.assertIn("1/0", cell.err)

    def test_last_error_is_kept(self):
        self.run_cell("1/0")
        self.assertEqual(self.value("import sys\nsys.last_type.__name__"), "ZeroDivisionError")


if __name__ == "__main__":
    unittest.main()
