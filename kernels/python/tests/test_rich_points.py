"""Charts of lines and scattered points hold the numbers that were plotted."""

import datetime
import json
import unittest

from _sandglass import rich

rich.install()

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from _sandglass.rich import charts


class Charts(unittest.TestCase):
    def tearDown(self):
        plt.close("all")

    def chart(self):
        chart = charts.of_figure(plt.gcf())
        json.dumps(chart, allow_nan=False)
        return chart

    def points(self, index=0):
        return self.chart()["elements"][index]["points"]


class Lines(Charts):
    def test_whole_chart(self):
        plt.plot([1, 2, 3], [10, 20, 15], label="a")
        plt.title("T")
        plt.xlabel("Time (s)")
        plt.ylabel("Speed [m/s]")
        plt.xticks([1, 2, 3])
        plt.yticks([10, 20], ["low", "high"])
        self.assertEqual(
            self.chart(),
            {
                "type": "line",
                "title": "T",
                "x_label": "Time (s)",
                "y_label": "Speed [m/s]",
                "x_unit": "s",
                "y_unit": "m/s",
                "x_scale": "linear",
                "x_ticks": [1.0, 2.0, 3.0],
                "x_tick_labels": ["1", "2", "3"],
                "y_scale": "linear",
                "y_ticks": [10.0, 20.0],
                "y_tick_labels": ["low", "high"],
                "elements": [{"label": "a", "points": [[1.0, 10.0], [2.0, 20.0], [3.0, 15.0]]}],
            },
        )

    def test_no_labels(self):
        plt.plot([1, 2])
        chart = self.chart()
        for name in ("title", "x_label", "y_label", "x_unit", "y_unit"):
            self.assertIsNone(chart[name])
        self.assertEqual(chart["elements"][0]["label"], "Line 0")

    def test_several_lines(self):
        x = np.linspace(0, 6, 50)
        plt.plot(x, np.sin(x), label="sin")
        plt.plot(x, np.cos(x), label="cos")
        elements = self.chart()["elements"]
        self.assertEqual([element["label"] for element in elements], ["sin", "cos"])
        for element, y in zip(elements, (np.sin(x), np.cos(x))):
            self.assertEqual(
                element["points"], [list(point) for point in zip(x.tolist(), y.tolist())]
            )

    def test_labels_from_the_legend(self):
        plt.plot([1, 2])
        plt.plot([2, 1])
        plt.legend(["up", "down"])
        self.assertEqual([e["label"] for e in self.chart()["elements"]], ["up", "down"])

    def test_labels_from_the_legend_by_colour(self):
        """As seaborn does it: lines without labels, and empty ones with."""
        plt.plot([1, 2], color="red")
        plt.plot([2, 1], color="blue")
        plt.plot([], [], color="blue", label="down")
        plt.plot([], [], color="red", label="up")
        plt.legend()
        self.assertEqual([e["label"] for e in self.chart()["elements"]], ["up", "down"])

    def test_legend_of_another_line_of_the_same_colour(self):
        plt.plot([1, 2], "k", label="data")
        plt.plot([2, 1], "k--")
        plt.legend()
        self.assertEqual([e["label"] for e in self.chart()["elements"]], ["data", "Line 1"])

    def test_unit_only_in_brackets_after_a_space(self):
        plt.plot([1, 2])
        plt.ylabel("f(x)")
        self.assertIsNone(self.chart()["y_unit"])

    def test_missing_values(self):
        plt.plot([1, 2, 3], [1, float("nan"), 3])
        self.assertEqual(self.points(), [[1.0, 1.0], [2.0, None], [3.0, 3.0]])

    def test_masked_values(self):
        plt.plot([1, 2], np.ma.array([1.0, 2.0], mask=[True, False]))
        self.assertEqual(self.points(), [[1.0, None], [2.0, 2.0]])

    def test_log_scales(self):
        plt.loglog([1, 10, 100], [1, 100, 10000])
        chart = self.chart()
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("log", "log"))
        self.assertEqual(self.points(), [[1.0, 1.0], [10.0, 100.0], [100.0, 10000.0]])

    def test_other_scales(self):
        for scale in ("symlog", "logit", "asinh"):
            plt.plot([0.1, 0.9], [0.1, 0.9])
            plt.yscale(scale)
            self.assertEqual(self.chart()["y_scale"], scale)
            plt.close("all")

    def test_categories(self):
        plt.plot(["a", "b", "c"], [3, 1, 2])
        chart = self.chart()
        self.assertEqual(chart["x_scale"], "categorical")
        self.assertEqual(chart["x_ticks"], ["a", "b", "c"])
        self.assertEqual(self.points(), [["a", 3.0], ["b", 1.0], ["c", 2.0]])

    def test_categories_on_the_y_axis(self):
        plt.plot([1, 2], ["p", "q"])
        self.assertEqual(self.chart()["y_scale"], "categorical")
        self.assertEqual(self.points(), [[1.0, "p"], [2.0, "q"]])

    def test_dates(self):
        plt.plot([datetime.date(2023, 9, day) for day in (1, 2, 3)], [1, 2, 3])
        chart = self.chart()
        self.assertEqual(chart["x_scale"], "datetime")
        self.assertEqual(
            [x for x, _ in self.points()],
            ["2023-09-01T00:00:00", "2023-09-02T00:00:00", "2023-09-03T00:00:00"],
        )
        for tick in chart["x_ticks"]:
            datetime.datetime.fromisoformat(tick)

    def test_moments(self):
        moments = [datetime.datetime(2024, 2, 29, 12, 30, second, 250000) for second in range(5)]
        plt.plot(moments, range(5))
        self.assertEqual([x for x, _ in self.points()], [moment.isoformat() for moment in moments])

    def test_moments_with_a_zone(self):
        zone = datetime.timezone(datetime.timedelta(hours=2))
        moments = [datetime.datetime(2024, 1, day, tzinfo=zone) for day in (1, 2)]
        plt.plot(moments, [1, 2])
        self.assertEqual([datetime.datetime.fromisoformat(x) for x, _ in self.points()], moments)

    def test_numpy_and_pandas_dates(self):
        for dates in (
            np.array(["2024-01-01", "2024-01-02"], "datetime64[D]"),
            pd.to_datetime(["2024-01-01", "2024-01-02"]),
        ):
            plt.plot(dates, [1, 2])
            self.assertEqual(self.chart()["x_scale"], "datetime")
            self.assertEqual(
                self.points(), [["2024-01-01T00:00:00", 1.0], ["2024-01-02T00:00:00", 2.0]]
            )
            plt.close("all")

    def test_pandas_time_series(self):
        index = pd.date_range("2024-01-01", periods=3, freq="D")
        pd.DataFrame({"v": [1.0, 2.0, 4.0]}, index=index).plot()
        chart = self.chart()
        self.assertEqual((chart["type"], chart["x_scale"]), ("line", "datetime"))
        self.assertEqual(
            chart["elements"],
            [
                {
                    "label": "v",
                    "points": [
                        ["2024-01-01T00:00:00", 1.0],
                        ["2024-01-02T00:00:00", 2.0],
                        ["2024-01-03T00:00:00", 4.0],
                    ],
                }
            ],
        )

    def test_pandas_months(self):
        index = pd.period_range("2024-01", periods=2, freq="M")
        pd.Series([1, 2], index=index, name="v").plot()
        self.assertEqual(
            self.points(), [["2024-01-01T00:00:00", 1.0], ["2024-02-01T00:00:00", 2.0]]
        )

    def test_marks_across_the_axes_are_no_data(self):
        plt.plot([1, 2], [3, 4], label="data")
        plt.axhline(3.5, label="limit")
        plt.axvline(1.5)
        plt.axline((1, 3), slope=1)
        self.assertEqual([e["label"] for e in self.chart()["elements"]], ["data"])

    def test_error_bars(self):
        plt.errorbar([1, 2], [3, 4], yerr=[0.1, 0.2], capsize=3, label="measured")
        self.assertEqual(
            self.chart()["elements"], [{"label": "measured", "points": [[1.0, 3.0], [2.0, 4.0]]}]
        )

    def test_stem(self):
        plt.stem([1, 2], [3, 4], label="s")
        self.assertEqual(
            self.chart()["elements"], [{"label": "s", "points": [[1.0, 3.0], [2.0, 4.0]]}]
        )

    def test_step_and_band(self):
        plt.step([1, 2], [3, 4], label="s")
        plt.fill_between([1, 2], [2, 3], [4, 5])
        self.assertEqual(
            self.chart()["elements"], [{"label": "s", "points": [[1.0, 3.0], [2.0, 4.0]]}]
        )

    def test_line_through_points(self):
        plt.scatter([1, 2], [1, 3], label="points")
        plt.plot([1, 2], [1, 2], label="fit")
        chart = self.chart()
        self.assertEqual(chart["type"], "line")
        self.assertEqual(
            chart["elements"],
            [
                {"label": "fit", "points": [[1.0, 1.0], [2.0, 2.0]]},
                {"label": "points", "points": [[1.0, 1.0], [2.0, 3.0]]},
            ],
        )

    def test_ticks_are_those_that_can_be_seen(self):
        plt.plot([0, 10])
        plt.yticks([0, 2, 4, 6, 8])
        plt.ylim(0, 4)
        self.assertEqual(self.chart()["y_ticks"], [0.0, 2.0, 4.0])

    def test_polar(self):
        plt.polar([0, 1], [1, 2])
        self.assertEqual(self.points(), [[0.0, 1.0], [1.0, 2.0]])


class Scatter(Charts):
    def test_points(self):
        rng = np.random.default_rng(1)
        x1, y1, x2, y2 = rng.random((4, 10))
        plt.scatter(x1, y1, label="one")
        plt.scatter(x2, y2, c=y2, label="two")
        plt.colorbar()
        chart = self.chart()
        self.assertEqual(chart["type"], "scatter")
        self.assertEqual(
            chart["elements"],
            [
                {"label": "one", "points": [list(p) for p in zip(x1.tolist(), y1.tolist())]},
                {"label": "two", "points": [list(p) for p in zip(x2.tolist(), y2.tolist())]},
            ],
        )
        self.assertEqual(chart["x_scale"], "linear")

    def test_no_label(self):
        plt.scatter([1], [2])
        self.assertEqual(self.chart()["elements"], [{"label": "Scatter 0", "points": [[1.0, 2.0]]}])

    def test_categories(self):
        plt.scatter(["a", "b", "a"], [1, 2, 3])
        self.assertEqual(self.points(), [["a", 1.0], ["b", 2.0], ["a", 3.0]])

    def test_points_spread_beside_their_category(self):
        plt.scatter(["a", "b"], [1, 2])
        plt.scatter([-0.1, 0.1, 1.2], [3, 4, 5])
        self.assertEqual(self.points(1), [["a", 3.0], ["a", 4.0], ["b", 5.0]])

    def test_dates(self):
        plt.scatter([datetime.datetime(2024, 1, 1, 12)], [5])
        self.assertEqual(self.points(), [["2024-01-01T12:00:00", 5.0]])

    def test_log_scale(self):
        plt.scatter([1, 1000], [1, 2])
        plt.xscale("log")
        self.assertEqual(self.chart()["x_scale"], "log")
        self.assertEqual(self.points(), [[1.0, 1.0], [1000.0, 2.0]])

    def test_pandas(self):
        pd.DataFrame({"a": [1, 2], "b": [3.5, 4]}).plot.scatter(x="a", y="b")
        chart = self.chart()
        self.assertEqual((chart["type"], chart["x_label"], chart["y_label"]), ("scatter", "a", "b"))
        self.assertEqual(self.points(), [[1.0, 3.5], [2.0, 4.0]])

    def test_empty_series_of_a_legend(self):
        """As seaborn makes it: one collection of all points, and empty ones for the legend."""
        plt.scatter([1, 2], [3, 4], c=["red", "blue"])
        plt.scatter([], [], c="red", label="r")
        plt.scatter([], [], c="blue", label="b")
        plt.legend()
        chart = self.chart()
        self.assertEqual(len(chart["elements"]), 1)
        self.assertEqual(chart["elements"][0]["points"], [[1.0, 3.0], [2.0, 4.0]])

    def test_contours_are_no_points(self):
        plt.contourf(np.arange(9).reshape(3, 3))
        self.assertEqual(self.chart()["type"], "unknown")

    def test_too_many_points(self):
        plt.scatter(np.zeros(150_001), np.zeros(150_001))
        got = rich.figures()[0]
        self.assertNotIn("chart", got)
        self.assertIn("png", got)
        self.assertIn("chart left out: it has 150001 points", got["text"])


if __name__ == "__main__":
    unittest.main()
