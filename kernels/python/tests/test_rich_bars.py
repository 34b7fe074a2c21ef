"""Charts of bars, pies and boxes hold the numbers that were plotted."""

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

    def chart(self, kind):
        chart = charts.of_figure(plt.gcf())
        json.dumps(chart, allow_nan=False)
        self.assertEqual(chart["type"], kind)
        return chart


class Bars(Charts):
    def bars(self):
        return [(e["label"], e["value"], e["group"]) for e in self.chart("bar")["elements"]]

    def test_whole_chart(self):
        plt.bar(["A", "B", "C"], [100, 300, 200], label="Sold")
        plt.title("Sales")
        plt.xlabel("Author")
        plt.ylabel("Books (thousands)")
        self.assertEqual(
            self.chart("bar"),
            {
                "type": "bar",
                "title": "Sales",
                "x_label": "Author",
                "y_label": "Books (thousands)",
                "x_unit": None,
                "y_unit": "thousands",
                "elements": [
                    {"label": "A", "value": 100, "group": "Sold"},
                    {"label": "B", "value": 300, "group": "Sold"},
                    {"label": "C", "value": 200, "group": "Sold"},
                ],
            },
        )

    def test_equal_heights(self):
        plt.bar(["a", "b"], [5, 5])
        self.assertEqual(self.bars(), [("a", 5, "Group 0"), ("b", 5, "Group 0")])

    def test_lying(self):
        plt.barh(["a", "b", "c"], [1, 2.5, -3], label="g")
        self.assertEqual(self.bars(), [("a", 1, "g"), ("b", 2.5, "g"), ("c", -3, "g")])

    def test_grouped(self):
        x = np.arange(3)
        plt.bar(x - 0.2, [1, 2, 3], 0.4, label="men")
        plt.bar(x + 0.2, [4, 5, 6], 0.4, label="women")
        plt.xticks(x, ["G1", "G2", "G3"])
        plt.legend()
        self.assertEqual(
            self.bars(),
            [
                ("G1", 1, "men"),
                ("G2", 2, "men"),
                ("G3", 3, "men"),
                ("G1", 4, "women"),
                ("G2", 5, "women"),
                ("G3", 6, "women"),
            ],
        )

    def test_grouped_with_labels_set_on_the_axes(self):
        _, ax = plt.subplots()
        x = np.arange(2)
        for index in range(3):
            ax.bar(x + 0.25 * index, [index + 1, index + 2], 0.25)
        ax.set_xticks(x + 0.25)
        ax.set_xticklabels(["p", "q"])
        ax.legend(["a", "b", "c"])
        self.assertEqual(
            self.bars(),
            [
                ("p", 1, "a"),
                ("q", 2, "a"),
                ("p", 2, "b"),
                ("q", 3, "b"),
                ("p", 3, "c"),
                ("q", 4, "c"),
            ],
        )

    def test_stacked(self):
        plt.bar(["x", "y"], [1, 2], label="low")
        plt.bar(["x", "y"], [3, 4], bottom=[1, 2], label="high")
        self.assertEqual(
            self.bars(), [("x", 1, "low"), ("y", 2, "low"), ("x", 3, "high"), ("y", 4, "high")]
        )

    def test_lying_stack(self):
        plt.barh(["x", "y"], [1, 2], label="low")
        plt.barh(["x", "y"], [3, 4], left=[1, 2], label="high")
        self.assertEqual(
            self.bars(), [("x", 1, "low"), ("y", 2, "low"), ("x", 3, "high"), ("y", 4, "high")]
        )

    def test_numbers_and_edges(self):
        plt.bar([2020, 2021], [1, 2])
        self.assertEqual([bar[0] for bar in self.bars()], ["2020", "2021"])
        plt.close("all")
        plt.bar([0.5, 1.5], [1, 2])
        self.assertEqual([bar[0] for bar in self.bars()], ["0.5", "1.5"])

    def test_dates(self):
        plt.bar([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)], [1, 2])
        self.assertEqual(
            [bar[0] for bar in self.bars()], ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]
        )

    def test_ticks_hidden(self):
        plt.bar(["a", "b"], [1, 2])
        plt.xticks([])
        self.assertEqual([bar[0] for bar in self.bars()], ["a", "b"])

    def test_error_bars(self):
        plt.bar(["a", "b"], [1, 2], yerr=[0.1, 0.2], capsize=4, label="g")
        self.assertEqual(self.bars(), [("a", 1, "g"), ("b", 2, "g")])

    def test_log_scale(self):
        plt.bar(["a", "b"], [1, 1000], log=True)
        self.assertEqual([bar[1] for bar in self.bars()], [1, 1000])

    def test_missing_value(self):
        plt.bar(["a", "b"], [1, float("nan")])
        self.assertEqual([bar[1] for bar in self.bars()], [1, None])

    def test_histogram(self):
        plt.hist([0, 1, 1, 2, 2, 2], bins=[0, 1, 2, 3])
        self.assertEqual([bar[:2] for bar in self.bars()], [("0.5", 1), ("1.5", 2), ("2.5", 3)])

    def test_bar_drawn_nowhere(self):
        """As seaborn does it."""
        plt.bar([float("nan")], [float("nan")])
        plt.bar([1, 2], [3, 4])
        self.assertEqual([bar[:2] for bar in self.bars()], [("1", 3), ("2", 4)])

    def test_bars_with_a_line(self):
        plt.bar(["a", "b"], [1, 2])
        plt.plot(["a", "b"], [1.5, 1.5])
        self.assertEqual(len(self.bars()), 2)

    def test_pandas(self):
        frame = pd.DataFrame({"m": [1, 2], "w": [3, 4]}, index=["a", "b"])
        frame.plot.bar()
        expected = [("a", 1, "m"), ("b", 2, "m"), ("a", 3, "w"), ("b", 4, "w")]
        self.assertEqual(self.bars(), expected)
        plt.close("all")
        frame.plot.barh(stacked=True)
        self.assertEqual(self.bars(), expected)


class Pies(Charts):
    def pie(self):
        return [(e["label"], e["angle"], e["radius"]) for e in self.chart("pie")["elements"]]

    def test_whole_chart(self):
        plt.pie([90, 10], labels=["No", "Yes"], autopct="%1.1f%%", startangle=90)
        plt.title("Early?")
        self.assertEqual(
            self.chart("pie"),
            {
                "type": "pie",
                "title": "Early?",
                "elements": [
                    {"label": "No", "angle": 324.0, "radius": 1},
                    {"label": "Yes", "angle": 36.0, "radius": 1},
                ],
            },
        )

    def test_explode_shadow_radius_clockwise(self):
        plt.pie(
            [1, 1, 2],
            labels=list("abc"),
            explode=[0, 0.2, 0],
            shadow=True,
            radius=1.5,
            counterclock=False,
            startangle=45,
        )
        self.assertEqual(self.pie(), [("a", 90.0, 1.5), ("b", 90.0, 1.5), ("c", 180.0, 1.5)])

    def test_thirds(self):
        plt.pie([1, 1, 1])
        self.assertEqual(self.pie(), [("", 120.0, 1)] * 3)

    def test_labels_in_the_legend(self):
        wedges, _ = plt.pie([1, 3])
        plt.legend(wedges, ["one", "three"])
        self.assertEqual(self.pie(), [("one", 90.0, 1), ("three", 270.0, 1)])

    def test_rings(self):
        plt.pie([1, 1], labels=["a", "b"], radius=1, wedgeprops={"width": 0.3})
        plt.pie([1, 3], labels=["c", "d"], radius=0.7, wedgeprops={"width": 0.3})
        self.assertEqual(
            self.pie(), [("a", 180.0, 1), ("b", 180.0, 1), ("c", 90.0, 0.7), ("d", 270.0, 0.7)]
        )

    def test_pandas(self):
        pd.Series([1, 3], index=["a", "b"]).plot.pie()
        self.assertEqual(self.pie(), [("a", 90.0, 1), ("b", 270.0, 1)])


class Boxes(Charts):
    DATA = [[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87], [75, 82, 88, 79, 86]]
    EXPECTED = [
        {
            "label": "A",
            "min": 78,
            "first_quartile": 85,
            "median": 88,
            "third_quartile": 90,
            "max": 92,
            "outliers": [],
        },
        {
            "label": "B",
            "min": 84,
            "first_quartile": 84.75,
            "median": 88,
            "third_quartile": 90.5,
            "max": 95,
            "outliers": [76],
        },
        {
            "label": "C",
            "min": 75,
            "first_quartile": 79,
            "median": 82,
            "third_quartile": 86,
            "max": 88,
            "outliers": [],
        },
    ]

    def boxes(self):
        return self.chart("box_and_whisker")["elements"]

    def test_upright(self):
        plt.boxplot(self.DATA, labels=["A", "B", "C"])
        plt.title("Scores")
        plt.ylabel("Score (%)")
        chart = self.chart("box_and_whisker")
        self.assertEqual(chart["elements"], self.EXPECTED)
        self.assertEqual((chart["title"], chart["x_label"], chart["y_unit"]), ("Scores", None, "%"))

    def test_filled(self):
        plt.boxplot(
            self.DATA, labels=["A", "B", "C"], patch_artist=True, notch=True, showmeans=True
        )
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_lying(self):
        plt.boxplot(self.DATA, labels=["A", "B", "C"], vert=False)
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_labels_set_later(self):
        _, ax = plt.subplots()
        ax.boxplot(self.DATA)
        self.assertEqual([box["label"] for box in self.boxes()], ["1", "2", "3"])
        ax.set_xticklabels(["A", "B", "C"])
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_without_outliers_shown(self):
        plt.boxplot(self.DATA, showfliers=False)
        self.assertEqual([box["outliers"] for box in self.boxes()], [[], [], []])

    def test_drawn_twice(self):
        plt.boxplot(self.DATA, labels=["A", "B", "C"])
        plt.boxplot(self.DATA, labels=["A", "B", "C"], patch_artist=True)
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_groups_side_by_side(self):
        plt.boxplot(self.DATA[:1], positions=[1], labels=["A"])
        plt.boxplot(self.DATA[1:2], positions=[2], labels=["B"])
        plt.boxplot(self.DATA[2:], positions=[3], labels=["C"])
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_cleared_axes(self):
        plt.boxplot(self.DATA)
        plt.cla()
        plt.plot([1, 2])
        self.assertEqual(self.chart("line")["elements"][0]["points"], [[0.0, 1.0], [1.0, 2.0]])

    def test_points_on_boxes(self):
        plt.boxplot(self.DATA, labels=["A", "B", "C"])
        plt.scatter([1] * 5, self.DATA[0])
        self.assertEqual(self.boxes(), self.EXPECTED)

    def test_pandas(self):
        pd.DataFrame({"A": self.DATA[0], "C": self.DATA[2]}).boxplot()
        self.assertEqual(self.boxes(), [self.EXPECTED[0], self.EXPECTED[2]])
        plt.close("all")
        pd.DataFrame({"A": self.DATA[0], "C": self.DATA[2]}).plot.box(vert=False)
        self.assertEqual(self.boxes(), [self.EXPECTED[0], self.EXPECTED[2]])


if __name__ == "__main__":
    unittest.main()
