"""PIL images, plotly figures, sympy expressions."""

import base64
import io
import json
import os
import pathlib
import tempfile
import unittest

from _sandglass import rich

shown = []
rich.install(shown.append)

from PIL import Image


def opened(text):
    return Image.open(io.BytesIO(base64.b64decode(text)))


class Images(unittest.TestCase):
    def setUp(self):
        rich.set_publisher(shown.append)
        self.addCleanup(rich.set_publisher, None)
        shown.clear()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_png(self):
        image = Image.new("RGBA", (3, 2), (10, 20, 30, 40))
        got = rich.bundle(image)
        self.assertEqual(set(got), {"text", "png"})
        again = opened(got["png"])
        self.assertEqual(
            (again.format, again.size, again.getpixel((0, 0))), ("PNG", (3, 2), (10, 20, 30, 40))
        )

    def test_modes(self):
        for mode in ("1", "L", "LA", "P", "I", "F", "RGB", "CMYK", "YCbCr", "HSV"):
            self.assertEqual(opened(rich.bundle(Image.new(mode, (4, 4)))["png"]).size, (4, 4), mode)

    def test_jpeg(self):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), "red").save(buffer, "JPEG")
        got = rich.bundle(Image.open(buffer))
        self.assertEqual(opened(got["jpeg"]).format, "JPEG")
        self.assertEqual(opened(got["png"]).size, (8, 8))

    def test_large_jpeg_is_no_png(self):
        buffer = io.BytesIO()
        Image.new("RGB", (2000, 1500)).save(buffer, "JPEG")
        self.assertEqual(set(rich.bundle(Image.open(buffer))), {"text", "jpeg"})

    def test_save_shows(self):
        path = os.path.join(self.folder, "a.png")
        Image.new("RGB", (5, 4)).save(path)
        self.assertTrue(os.path.getsize(path))
        self.assertEqual(opened(shown[0]["png"]).size, (5, 4))
        Image.new("RGB", (5, 4)).save(pathlib.Path(path), quality=5)
        self.assertEqual(len(shown), 2)

    def test_save_to_memory_does_not(self):
        Image.new("RGB", (5, 4)).save(io.BytesIO(), "PNG")
        self.assertEqual(shown, [])

    def test_save_by_a_library_does_not(self):
        from matplotlib import image

        image.imsave(os.path.join(self.folder, "a.png"), [[0, 1], [1, 0]])
        self.assertEqual(shown, [])

    def test_failing_save(self):
        with self.assertRaises(ValueError):
            Image.new("RGB", (5, 4)).save(os.path.join(self.folder, "a.nothing"))
        self.assertEqual(shown, [])

    def test_show(self):
        Image.new("RGB", (5, 4)).show()
        self.assertEqual(opened(shown[0]["png"]).size, (5, 4))

    def test_closed_image(self):
        path = os.path.join(self.folder, "a.png")
        Image.new("RGB", (5, 4)).save(path)
        image = Image.open(path)
        image.close()
        self.assertIn("text", rich.bundle(image))


class Plotly(unittest.TestCase):
    def setUp(self):
        import plotly.graph_objects as go

        rich.set_publisher(shown.append)
        self.addCleanup(rich.set_publisher, None)
        shown.clear()
        self.figure = go.Figure(go.Scatter(x=[1, 2], y=[3.5, None], name="s"), {"title": "T"})

    def check(self, got):
        drawn = got["extra"]["application/vnd.plotly.v1+json"]
        self.assertEqual(drawn["data"][0]["x"], [1, 2])
        self.assertEqual(drawn["data"][0]["y"], [3.5, None])
        self.assertEqual(drawn["layout"]["title"]["text"], "T")
        self.assertIn("<div", got["html"])
        self.assertTrue(got["text"].startswith("Figure("))
        self.assertLess(len(got["html"]), 100_000)
        json.dumps(got, allow_nan=False)

    def test_value(self):
        self.check(rich.bundle(self.figure))

    def test_show(self):
        self.figure.show()
        self.check(shown[0])


class Sympy(unittest.TestCase):
    def test_expression(self):
        import sympy

        x = sympy.Symbol("x")
        got = rich.bundle(x**2 / 2)
        self.assertEqual(got, {"text": "x**2/2", "latex": "$\\displaystyle \\frac{x^{2}}{2}$"})

    def test_matrix(self):
        import sympy

        got = rich.bundle(sympy.Matrix([[1, 2]]))
        self.assertIn("\\begin{matrix}1 & 2\\end{matrix}", got["latex"])
        self.assertEqual(got["text"], "Matrix([[1, 2]])")


if __name__ == "__main__":
    unittest.main()
