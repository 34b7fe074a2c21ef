"""Figures: when they are shown, what they consist of, charts of several axes."""

import base64
import json
import unittest

from _sandglass import rich

shown = []
rich.install(shown.append)

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from _sandglass.rich import charts

PNG = b"\x89PNG\r\n"


class Case(unittest.TestCase):
    def setUp(self):
        rich.set_publisher(shown.append)
        self.addCleanup(rich.set_publisher, None)
        shown.clear()
        plt.close("all")

    def chart(self):
        return charts.of_figure(plt.gcf())


class Showing(Case):
    def test_backend(self):
        self.assertEqual(matplotlib.get_backend().lower(), "agg")

    def test_end_of_cell(self):
        plt.plot([1, 2])
        got = rich.figures()
        self.assertEqual(len(got), 1)
        self.assertEqual(got[0]["text"], "<Figure size 640x480 with 1 Axes>")
        self.assertTrue(base64.b64decode(got[0]["png"]).startswith(PNG))
        self.assertEqual(got[0]["chart"]["type"], "line")
        self.assertEqual(plt.get_fignums(), [])
        self.assertEqual(rich.figures(), [])
        json.dumps(got, allow_nan=False)

    def test_show(self):
        plt.plot([1, 2])
        plt.show()
        self.assertEqual(len(shown), 1)
        self.assertEqual(rich.figures(), [])
        plt.show(block=True)
        self.assertEqual(len(shown), 1)

    def test_two_figures_in_order(self):
        plt.figure()
        plt.plot([1])
        plt.figure()
        plt.scatter([1], [1])
        plt.show()
        self.assertEqual([one["chart"]["type"] for one in shown], ["line", "scatter"])

    def test_value_of_the_cell_is_shown_once(self):
        fig, ax = plt.subplots()
        ax.plot([1, 2])
        self.assertIn("png", rich.bundle(fig))
        self.assertEqual(rich.figures(), [])

    def test_drawn_on_after_it_was_displayed(self):
        fig, ax = plt.subplots()
        ax.plot([1, 2])
        rich.display(fig)
        ax.plot([2, 1])
        self.assertEqual(len(rich.figures()[0]["chart"]["elements"]), 2)

    def test_own_show(self):
        fig, ax = plt.subplots()
        ax.plot([1, 2])
        fig.show()
        self.assertEqual(len(shown), 1)
        self.assertEqual(rich.figures(), [])

    def test_closed_figure(self):
        plt.plot([1, 2])
        plt.close()
        self.assertEqual(rich.figures(), [])

    def test_again_in_a_later_cell(self):
        fig, ax = plt.subplots()
        ax.plot([1, 2])
        rich.figures()
        self.assertIn("png", rich.bundle(fig))

    def test_figure_without_pyplot(self):
        fig = Figure()
        fig.subplots().plot([1, 2])
        got = rich.bundle(fig)
        self.assertIn("png", got)
        self.assertEqual(got["chart"]["elements"][0]["points"], [[0.0, 1.0], [1.0, 2.0]])

    def test_saved_figure_is_shown_once(self):
        import os
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            plt.plot([1, 2])
            plt.savefig(os.path.join(folder, "f.png"))
        self.assertEqual(shown, [])
        self.assertEqual(len(rich.figures()), 1)

    def test_figure_without_axes(self):
        plt.figure()
        self.assertEqual(rich.figures(), [{"text": "<Figure size 640x480 with 0 Axes>"}])

    def test_picture_of_the_size_asked_for(self):
        fig = plt.figure(figsize=(4, 3), dpi=50)
        fig.add_axes((0, 0, 1, 1)).plot([1, 2])
        picture = base64.b64decode(rich.figures()[0]["png"])
        width = int.from_bytes(picture[16:20], "big")
        self.assertAlmostEqual(width, 200, delta=60)

    def test_formula_that_cannot_be_drawn(self):
        fig, ax = plt.subplots()
        ax.set_title(r"$\nothing{x}$")
        got = rich.bundle(fig)
        self.assertNotIn("png", got)
        self.assertIn("<not shown in full: ValueError", got["text"])
        with self.assertRaises(ValueError):
            plt.show()
        self.assertEqual(rich.figures(), [])

    def test_axes_far_outside(self):
        plt.plot([1, 2])
        plt.text(1e9, 1e9, "far")
        self.assertIn("png", rich.figures()[0])


class SeveralAxes(Case):
    def test_blank(self):
        plt.subplots()
        got = rich.figures()[0]
        self.assertIn("png", got)
        self.assertEqual(got["chart"], {})

    def test_unknown(self):
        _, ax = plt.subplots()
        ax.add_artist(plt.Circle((0, 0), 1))
        ax.grid(True)
        ax.set_title("Circle")
        self.assertEqual(self.chart(), {"type": "unknown", "title": "Circle", "elements": []})

    def test_picture(self):
        plt.imshow(np.zeros((3, 3)))
        self.assertEqual(self.chart()["type"], "unknown")

    def test_three_dimensions(self):
        plt.figure().add_subplot(projection="3d").plot([1, 2], [1, 2], [1, 2])
        self.assertEqual(self.chart()["type"], "unknown")

    def test_subplots(self):
        fig, axs = plt.subplots(2, 2)
        fig.suptitle("All")
        axs[0, 0].plot([1, 2])
        axs[0, 0].set_title("line")
        axs[0, 1].scatter([1], [2])
        axs[1, 0].bar(["a"], [3])
        axs[1, 1].pie([1, 1])
        chart = self.chart()
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "All"))
        self.assertEqual(
            [one["type"] for one in chart["elements"]], ["line", "scatter", "bar", "pie"]
        )
        self.assertEqual(chart["elements"][0]["title"], "line")
        self.assertEqual(
            chart["elements"][2]["elements"], [{"label": "a", "value": 3, "group": "Group 0"}]
        )

    def test_unused_axes_do_not_count(self):
        _, axs = plt.subplots(1, 2)
        axs[1].plot([1, 2])
        self.assertEqual(self.chart()["type"], "line")

    def test_title_over_one_axes(self):
        plt.plot([1, 2])
        plt.suptitle("Over")
        self.assertEqual(self.chart()["title"], "Over")

    def test_twin_axes(self):
        _, ax = plt.subplots()
        ax.bar(["a", "b"], [1, 2])
        ax.set_ylabel("count")
        other = ax.twinx()
        other.plot(["a", "b"], [50, 100], label="%")
        other.set_ylabel("share (%)")
        chart = self.chart()
        self.assertEqual([one["type"] for one in chart["elements"]], ["bar", "line"])
        self.assertEqual([one["y_label"] for one in chart["elements"]], ["count", "share (%)"])
        self.assertEqual(
            chart["elements"][1]["elements"],
            [{"label": "%", "points": [["a", 50.0], ["b", 100.0]]}],
        )

    def test_left_title(self):
        plt.plot([1, 2])
        plt.title("L", loc="left")
        self.assertEqual(self.chart()["title"], "L")


if __name__ == "__main__":
    unittest.main()
