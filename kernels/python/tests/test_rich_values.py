"""Bundles of plain values, of containers and of objects with `_repr_*_` methods."""

import base64
import collections
import enum
import json
import unittest
from unittest import mock

from _sandglass import rich
from _sandglass.rich import plain


def with_methods(**methods):
    """An object with the methods; a value that is no function is what the method answers."""
    members = {}
    for name, value in methods.items():
        members[name] = value if callable(value) else (lambda self, value=value: value)
    return type("Shown", (), members)()


def raising(*_args, **_kwargs):
    raise ValueError("no")


class PlainValues(unittest.TestCase):
    def check(self, value, text):
        self.assertEqual(rich.bundle(value), {"text": text})

    def test_numbers(self):
        self.check(2, "2")
        self.check(-1.5, "-1.5")
        self.check(float("nan"), "nan")
        self.check(True, "True")
        self.check(1 + 2j, "(1+2j)")

    def test_none(self):
        self.check(None, "None")

    def test_str_loses_its_quotes_and_keeps_its_escapes(self):
        self.check("abc", "abc")
        self.check("it's", "it's")
        self.check("", "")
        self.check("a\nb", "a\\nb")
        self.check("'", "'")
        self.check("'quoted'", "'quoted'")

    def test_lone_surrogates_are_escaped(self):
        self.check("\udc80", "\\udc80")

    def test_str_subclass(self):
        class Name(str):
            pass

        self.check(Name("x"), "x")

    def test_bytes_keep_their_quotes(self):
        self.check(b"abc", "b'abc'")

    def test_number_too_long_to_print(self):
        text = rich.bundle(10**10000)["text"]
        self.assertIn("whose repr raised ValueError", text)

    def test_enum(self):
        Colour = enum.Enum("Colour", "RED")
        self.check(Colour.RED, "<Colour.RED: 1>")

    def test_class_and_functions(self):
        self.check(int, "int")
        self.check(collections.OrderedDict, "collections.OrderedDict")
        self.assertTrue(rich.bundle(raising)["text"].endswith(".raising(*_args, **_kwargs)>"))
        self.check(len, "<function len(obj, /)>")

    def test_class_with_repr_methods_is_not_asked(self):
        class Shown:
            def _repr_html_(self):
                return "x"

        self.assertEqual(list(rich.bundle(Shown)), ["text"])


class Containers(unittest.TestCase):
    def test_list(self):
        self.assertEqual(rich.bundle([1, "a"]), {"text": "[1, 'a']", "json": [1, "a"]})

    def test_empty(self):
        self.assertEqual(rich.bundle([]), {"text": "[]", "json": []})
        self.assertEqual(rich.bundle({}), {"text": "{}", "json": {}})

    def test_dict(self):
        value = {"b": 1, "a": [None, True]}
        self.assertEqual(rich.bundle(value), {"text": "{'b': 1, 'a': [None, True]}", "json": value})

    def test_keys_become_text(self):
        self.assertEqual(
            rich.bundle({1: 2, None: 3, True: 4, (1, 2): 5})["json"],
            {"1": 4, "null": 3, "(1, 2)": 5},
        )

    def test_what_json_does_not_know(self):
        got = rich.bundle([float("nan"), float("inf"), 1 << 70, 10**400])["json"]
        self.assertEqual(got, [None, None, float(1 << 70), None])
        json.dumps(got, allow_nan=False)

    def test_surrogates_in_json(self):
        self.assertEqual(
            rich.bundle(["\ud83d\ude00", "a\udc80"])["json"], ["\U0001f600", "a\ufffd"]
        )

    def test_objects_have_no_json(self):
        self.assertNotIn("json", rich.bundle([object()]))

    def test_tuple_and_set_have_text_only(self):
        self.assertEqual(rich.bundle((1,)), {"text": "(1,)"})
        self.assertEqual(rich.bundle({1}), {"text": "{1}"})
        self.assertEqual(rich.bundle(set()), {"text": "set()"})

    def test_cycle(self):
        value = [1]
        value.append(value)
        self.assertEqual(rich.bundle(value), {"text": "[1, [...]]"})

    def test_deep(self):
        value = []
        for _ in range(5000):
            value = [value]
        got = rich.bundle(value)
        self.assertNotIn("json", got)
        self.assertIn("...", got["text"])

    def test_large_list_has_no_json_and_a_short_text(self):
        got = rich.bundle(list(range(plain.MAX_NODES + 1)))
        self.assertNotIn("json", got)
        self.assertTrue(got["text"].endswith(" 999,\n ...]"))

    def test_much_text_has_no_json(self):
        self.assertNotIn("json", rich.bundle(["x" * (plain.MAX_TEXT + 1)]))

    def test_subclasses(self):
        value = collections.OrderedDict(a=1)
        self.assertEqual(rich.bundle(value)["json"], {"a": 1})
        self.assertEqual(rich.bundle(collections.Counter("aab"))["json"], {"a": 2, "b": 1})

    def test_element_with_failing_repr(self):
        got = rich.bundle([with_methods(__repr__=raising)])
        self.assertIn("whose repr raised ValueError: no", got["text"])


class ReprMethods(unittest.TestCase):
    def test_text_formats(self):
        formats = ("html", "markdown", "svg", "latex", "javascript")
        obj = with_methods(**{f"_repr_{name}_": f"<{name}>" for name in formats}, __repr__="me")
        self.assertEqual(rich.bundle(obj), {"text": "me"} | {name: f"<{name}>" for name in formats})

    def test_binary_formats_become_base64(self):
        data = bytes(range(256)) * 4
        obj = with_methods(_repr_png_=data, _repr_jpeg_=data, _repr_pdf_=data)
        got = rich.bundle(obj)
        for name in ("png", "jpeg", "pdf"):
            self.assertNotIn("\n", got[name])
            self.assertEqual(base64.b64decode(got[name]), data)

    def test_base64_stays_and_loses_its_line_ends(self):
        self.assertEqual(rich.bundle(with_methods(_repr_png_="QUJD\nREVG\n"))["png"], "QUJDREVG")

    def test_json(self):
        self.assertEqual(
            rich.bundle(with_methods(_repr_json_={"a": float("inf")}))["json"], {"a": None}
        )

    def test_data_with_metadata(self):
        self.assertEqual(
            rich.bundle(with_methods(_repr_html_=("<b>", {"isolated": True})))["html"], "<b>"
        )

    def test_none_is_no_representation(self):
        self.assertEqual(list(rich.bundle(with_methods(_repr_html_=None, __repr__="x"))), ["text"])

    def test_wrong_type_is_left_out(self):
        obj = with_methods(_repr_html_=7, _repr_png_=7, _repr_markdown_=b"x", __repr__="x")
        self.assertEqual(rich.bundle(obj), {"text": "x"})

    def test_one_that_raises_leaves_the_others(self):
        obj = with_methods(_repr_html_=raising, _repr_latex_="$x$", __repr__="x")
        self.assertEqual(rich.bundle(obj), {"text": "x", "latex": "$x$"})

    def test_repr_raises_and_others_are_there(self):
        self.assertEqual(
            rich.bundle(with_methods(__repr__=raising, _repr_html_="h")), {"html": "h"}
        )

    def test_repr_raises_and_nothing_else(self):
        self.assertEqual(
            rich.bundle(with_methods(__repr__=raising)),
            {"text": "<Shown object, whose repr raised ValueError: no>"},
        )

    def test_repr_is_no_string(self):
        text = rich.bundle(with_methods(__repr__=7))["text"]
        self.assertIn("TypeError: __repr__ returned non-string", text)

    def test_repr_with_surrogates(self):
        self.assertEqual(rich.bundle(with_methods(__repr__="a\ud800b")), {"text": "a\ufffdb"})

    def test_interrupt_is_not_swallowed(self):
        def interrupted(self):
            raise KeyboardInterrupt

        for name in ("__repr__", "_repr_html_"):
            with self.assertRaises(KeyboardInterrupt):
                rich.bundle(with_methods(**{name: interrupted}))

    def test_mock_has_every_method_and_shows_text_only(self):
        self.assertEqual(list(rich.bundle(mock.MagicMock())), ["text"])

    def test_proxy_that_cannot_be_asked_for_its_class(self):
        class Unbound:
            __class__ = property(raising)

        self.assertIn("ValueError: no", rich.bundle(Unbound())["text"])

    def test_pretty_method(self):
        def pretty(self, page, cycle):
            with page.group(1, "<", ">"):
                page.pretty([1])
                page.breakable()
                page.text("end")

        self.assertEqual(rich.bundle(with_methods(_repr_pretty_=pretty)), {"text": "<[1] end>"})

    def test_object_that_displays_itself(self):
        calls = []
        obj = with_methods(_ipython_display_=lambda self: calls.append(1))
        self.assertEqual(rich.bundle(obj), {})
        self.assertEqual(calls, [1])


class MimeBundles(unittest.TestCase):
    def test_known_and_unknown_types(self):
        obj = with_methods(
            __repr__="x",
            _repr_mimebundle_=lambda self, include=None, exclude=None: {
                "text/html": "<p>",
                "application/vnd.x+json": {"a": (1, float("nan"))},
                "image/gif": b"GIF8",
            },
        )
        self.assertEqual(
            rich.bundle(obj),
            {
                "text": "x",
                "html": "<p>",
                "extra": {"application/vnd.x+json": {"a": [1, None]}, "image/gif": "R0lGOA=="},
            },
        )

    def test_include_and_exclude_are_given(self):
        seen = {}

        def bundle(self, **kwargs):
            seen.update(kwargs)
            return {"text/plain": "p"}

        self.assertEqual(rich.bundle(with_methods(_repr_mimebundle_=bundle)), {"text": "p"})
        self.assertEqual(seen, {"include": None, "exclude": None})

    def test_method_that_takes_nothing(self):
        obj = with_methods(_repr_mimebundle_=lambda self: {"text/plain": "p"})
        self.assertEqual(rich.bundle(obj), {"text": "p"})

    def test_with_metadata(self):
        obj = with_methods(_repr_mimebundle_=lambda self, **_: ({"text/plain": "p"}, {"a": 1}))
        self.assertEqual(rich.bundle(obj), {"text": "p"})

    def test_methods_add_what_the_bundle_has_not(self):
        obj = with_methods(
            _repr_html_="other",
            _repr_latex_="l",
            _repr_mimebundle_=lambda self, **_: {"text/html": "h", "text/plain": "p"},
        )
        self.assertEqual(rich.bundle(obj), {"html": "h", "text": "p", "latex": "l"})

    def test_failing_or_wrong_bundle(self):
        for answer in (raising, lambda self, **_: 7, lambda self, **_: None):
            self.assertEqual(
                rich.bundle(with_methods(_repr_mimebundle_=answer, __repr__="x")), {"text": "x"}
            )

    def test_data_and_chart(self):
        obj = with_methods(
            _repr_mimebundle_=lambda self, **_: {
                "e2b/data": {"a": [1]},
                "e2b/chart": {"type": "line"},
                "text/plain": "p",
            }
        )
        self.assertEqual(
            rich.bundle(obj), {"text": "p", "data": {"a": [1]}, "chart": {"type": "line"}}
        )

    def test_json_text_is_parsed(self):
        self.assertEqual(rich.from_mime({"application/json": '{"a": 1}'}), {"json": {"a": 1}})


class Display(unittest.TestCase):
    def setUp(self):
        self.shown = []
        rich.set_publisher(self.shown.append)
        self.addCleanup(rich.set_publisher, None)

    def test_several(self):
        self.assertIsNone(rich.display(1, "a"))
        self.assertEqual(self.shown, [{"text": "1"}, {"text": "a"}])

    def test_raw(self):
        rich.display({"text/latex": "x"}, raw=True)
        self.assertEqual(self.shown, [{"latex": "x"}])

    def test_include_and_exclude(self):
        obj = with_methods(_repr_html_="h", _repr_latex_="l", __repr__="x")
        rich.display(obj, include=["text/html"])
        rich.display(obj, exclude=["text/html"])
        self.assertEqual(self.shown, [{"html": "h"}, {"text": "x", "latex": "l"}])

    def test_handle(self):
        handle = rich.display(1, display_id=True)
        handle.update(2)
        self.assertEqual(self.shown, [{"text": "1"}, {"text": "2"}])
        self.assertEqual(rich.display(1, display_id="mine").display_id, "mine")

    def test_object_that_displays_itself(self):
        rich.display(with_methods(_ipython_display_=lambda self: rich.display("inner")))
        self.assertEqual(self.shown, [{"text": "inner"}])


if __name__ == "__main__":
    unittest.main()
