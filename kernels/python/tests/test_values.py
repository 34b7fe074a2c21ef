"""The value of a cell, and the history of values."""

import unittest

from harness import KernelTest


class Values(KernelTest):
    def test_last_expression(self):
        self.assertEqual(self.value("1+1"), "2")

    def test_after_statements(self):
        self.assertEqual(self.value("x = 20\nx += 1\nx * 2"), "42")

    def test_only_the_last(self):
        cell = self.run_cell("1\n2\n3")
        self.assertEqual([r["text"] for r in cell.results], ["3"])

    def test_none_has_no_result(self):
        self.assertEqual(self.run_cell("None").results, [])

    def test_statement_has_no_result(self):
        self.assertEqual(self.run_cell("y = 5").results, [])

    def test_empty_cell(self):
        for code in ("", "\n\n", "# a comment", "   "):
            self.assertEqual(self.run_cell(code).events, [], repr(code))

    def test_semicolon(self):
        for code in ("7;", "7 ;  # why", "a = 1\n(a);", "f'é{1}' ;"):
            self.assertEqual(self.run_cell(code).results, [], code)

    def test_semicolon_that_is_not_at_the_end(self):
        self.assertEqual(self.value("a = 1; a"), "1")
        self.assertEqual(self.value("';'"), ";")
        self.assertEqual(self.value("9 # ;"), "9")

    def test_line_ends_of_windows(self):
        self.assertEqual(self.value("a = 3\r\na + 1\r\n"), "4")

    def test_indented_cell(self):
        self.assertEqual(self.value("    b = 5\n    b"), "5")

    def test_value_in_a_block_is_none(self):
        self.assertEqual(self.run_cell("if True:\n    5").results, [])

    def test_names_persist(self):
        self.run_cell("def twice(n):\n    return 2 * n")
        self.assertEqual(self.value("twice(21)"), "42")

    def test_large_cell_in_pieces(self):
        code = "big = '" + "a" * 1_000_000 + "'\nlen(big)"
        self.assertEqual(self.value(code), "1000000")

    def test_no_name_is_left_behind(self):
        self.run_cell("1\n2")
        self.assertEqual(self.value("[n for n in globals() if 'sandglass' in n]"), "[]")

    def test_future_lasts(self):
        kernel = self.own()
        kernel.run("from __future__ import annotations")
        cell = kernel.run("def f(a: nothing): pass\nf.__annotations__['a']")
        self.assertEqual(cell.text, "nothing")

    def test_rich_value(self):
        code = "class H:\n    def _repr_html_(self): return '<b>x</b>'\nH()"
        self.assertEqual(self.run_cell(code).main["html"], "<b>x</b>")

    def test_json_value(self):
        main = self.run_cell("{'a': [1, None]}").main
        self.assertEqual(main["json"], {"a": [1, None]})
        self.assertEqual(main["text"], "{'a': [1, None]}")

    def test_display(self):
        cell = self.run_cell("display(1, 'two')\n3")
        self.assertEqual([r["text"] for r in cell.shown], ["1", "two"])
        self.assertEqual(cell.text, "3")

    def test_display_in_order_with_output(self):
        cell = self.run_cell("print('a')\ndisplay(1)\nprint('b')")
        kinds = [e if isinstance(e, tuple) else "result" for e in cell.events]
        self.assertEqual(kinds, [("out", b"a\n"), "result", ("out", b"b\n")])

    def test_ipython_display(self):
        cell = self.run_cell(
            "from IPython.display import HTML, Markdown, display, clear_output, update_display\n"
            "display(HTML('<i>x</i>'))\nclear_output()\nMarkdown('# t')"
        )
        self.assertEqual(cell.shown[0]["html"], "<i>x</i>")
        self.assertEqual(cell.main["markdown"], "# t")

    def test_repr_that_raises(self):
        cell = self.run_cell("class B:\n    def __repr__(self): 1/0\nprint('before')\nB()")
        self.assertIsNone(cell.error)
        self.assertIn("ZeroDivisionError", cell.text)
        self.assertEqual(cell.out, "before\n")

    def test_display_of_repr_that_raises_goes_on(self):
        cell = self.run_cell("class B:\n    def __repr__(self): 1/0\ndisplay(B())\n'after'")
        self.assertIn("ZeroDivisionError", cell.shown[0]["text"])
        self.assertEqual(cell.text, "after")

    def test_surrogates(self):
        cell = self.run_cell(
            "class S:\n    def __repr__(self): return 'a\\ud800b'\n"
            "print('\\udcff')\ndisplay(S())\n{'k\\ud800': 'v\\udfff'}"
        )
        self.assertEqual(cell.out, "\\udcff\n")
        self.assertEqual(cell.shown[0]["text"].replace("\ufffd", "\\ud800"), "a\\ud800b")
        self.assertIsNone(cell.error)

    def test_source_that_is_no_utf8(self):
        cell = self.run_cell(b"'\xff\xfe'")
        self.assertIsNotNone(cell.error)
        self.assertEqual(self.value("1"), "1")

    def test_source_with_a_zero(self):
        self.assertIsNotNone(self.run_cell("a = 1\0").error)

    def test_nested_to_death(self):
        for code in ("(" * 5000 + ")" * 5000, "-" * 100000 + "1", "[" * 90 + "]" * 90):
            self.run_cell(code)
            self.assertEqual(self.value("1"), "1")


class History(KernelTest):
    def setUp(self):
        self.kernel = self.own()

    def test_underscores(self):
        self.run_cell("1")
        self.run_cell("2")
        self.run_cell("3")
        self.assertEqual(self.value("(_, __, ___)"), "(3, 2, 1)")

    def test_in_and_out(self):
        self.run_cell("'a'")
        self.run_cell("x = 1")
        self.assertEqual(self.value("In[1], In[2], Out"), "(\"'a'\", 'x = 1', {1: 'a'})")
        self.assertEqual(self.value("_1"), "a")

    def test_underscore_of_the_user(self):
        self.run_cell("_ = 'mine'")
        self.run_cell("5")
        self.assertEqual(self.value("_"), "mine")

    def test_out_is_bounded(self):
        for _ in range(1100):
            self.run_cell("0")
        self.assertEqual(self.value("len(Out) <= 1000, min(Out) > 90"), "(True, True)")

    def test_out_shows_itself(self):
        self.run_cell("1")
        self.run_cell("Out")
        self.assertEqual(self.value("Out"), "{1: 1}")


class Limits(KernelTest):
    def test_text_of_100_megabytes(self):
        cell = self.run_cell("class L:\n    def __repr__(self): return 'x' * 104857600\nL()")
        self.assertEqual(cell.text, "<text of 104857600 bytes left out: the limit is 33554432>")

    def test_json_that_is_too_large(self):
        cell = self.run_cell(
            "class J:\n    def _repr_mimebundle_(self, **k):\n"
            "        return {'text/plain': 'short', 'text/html': 'h' * (40 << 20)}\nJ()"
        )
        self.assertTrue(cell.text.startswith("short\n<html of 41943040 bytes left out"), cell.text[:99])
        self.assertNotIn("html", cell.main)

    def test_20_megabytes_arrive(self):
        cell = self.run_cell("class L:\n    def __repr__(self): return 'é' * (10 << 20)\nL()")
        self.assertEqual(len(cell.text), 10 << 20)
        self.assertEqual(set(cell.text), {"é"})

    def test_error_of_100_megabytes(self):
        cell = self.run_cell("raise ValueError('x' * (100 << 20))")
        self.assertEqual(cell.error["name"], "ValueError")
        self.assertLess(len(cell.error["value"]), 2 << 20)
        self.assertLess(len(cell.error["traceback"]), 2 << 20)

    def test_output_of_64_megabytes(self):
        cell = self.run_cell("for _ in range(64): print('y' * ((1 << 20) - 1))")
        self.assertEqual(len(cell.out), 64 << 20)


if __name__ == "__main__":
    unittest.main()
