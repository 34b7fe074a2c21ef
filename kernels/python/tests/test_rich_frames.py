"""pandas: frames and series."""

import datetime
import decimal
import json
import unittest

from _sandglass import rich
from _sandglass.rich import frames

rich.install()

import numpy as np
import pandas as pd


class Frames(unittest.TestCase):
    def data(self, frame):
        data = rich.bundle(frame)["data"]
        json.dumps(data, allow_nan=False)
        return data

    def test_frame(self):
        frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
        got = rich.bundle(frame)
        self.assertEqual(set(got), {"text", "html", "data"})
        self.assertEqual(got["text"], repr(frame))
        self.assertIn("<td>x</td>", got["html"])
        self.assertEqual(got["data"], {"a": [1, 2], "b": ["x", "y"]})

    def test_missing_values(self):
        frame = pd.DataFrame(
            {
                "f": [1.5, np.nan],
                "i": [np.inf, -np.inf],
                "o": ["x", None],
                "t": [pd.Timestamp("2024-01-02"), pd.NaT],
                "n": pd.array([1, None], dtype="Int64"),
                "s": pd.array(["a", None], dtype="string"),
            }
        )
        self.assertEqual(
            self.data(frame),
            {
                "f": [1.5, None],
                "i": [None, None],
                "o": ["x", None],
                "t": ["2024-01-02T00:00:00", None],
                "n": [1, None],
                "s": ["a", None],
            },
        )

    def test_kinds_of_values(self):
        zone = datetime.timezone.utc
        frame = pd.DataFrame(
            {
                "bool": [True, False],
                "date": [datetime.date(2024, 1, 2)] * 2,
                "zone": [datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=zone)] * 2,
                "delta": [pd.Timedelta(days=1)] * 2,
                "period": [pd.Period("2024-01", "M")] * 2,
                "decimal": [decimal.Decimal("1.5")] * 2,
                "list": [[1, np.int64(2)], {"a": np.nan}],
                "category": pd.Categorical(["x", "y"]),
                "small": np.array([1, 2], "float32"),
                "complex": [1j, 2j],
            }
        )
        got = self.data(frame)
        self.assertEqual(got["bool"], [True, False])
        self.assertEqual(got["date"][0], "2024-01-02")
        self.assertEqual(got["zone"][0], "2024-01-02T03:04:05+00:00")
        self.assertEqual(got["delta"][0], "P1DT0H0M0S")
        self.assertEqual(got["period"][0], "2024-01")
        self.assertEqual(got["decimal"][0], 1.5)
        self.assertEqual(got["list"], [[1, 2], {"a": None}])
        self.assertEqual(got["category"], ["x", "y"])
        self.assertEqual(got["small"], [1.0, 2.0])
        self.assertEqual(got["complex"], ["1j", "2j"])

    def test_names_of_columns(self):
        self.assertEqual(self.data(pd.DataFrame([[1, 2]])), {"0": [1], "1": [2]})
        self.assertEqual(
            self.data(pd.DataFrame([[1, 2]], columns=["a", "a"])), {"a": [1], "a.1": [2]}
        )
        columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
        self.assertEqual(
            self.data(pd.DataFrame([[1, 2]], columns=columns)),
            {"('a', 'x')": [1], "('a', 'y')": [2]},
        )

    def test_empty(self):
        self.assertEqual(self.data(pd.DataFrame()), {})
        self.assertEqual(self.data(pd.DataFrame({"a": []})), {"a": []})

    def test_series(self):
        got = rich.bundle(pd.Series([1.0, np.nan], name="v"))
        self.assertEqual(set(got), {"text", "data"})
        self.assertEqual(got["data"], {"v": [1.0, None]})
        self.assertEqual(self.data(pd.Series([1])), {"0": [1]})

    def test_large_frame(self):
        got = rich.bundle(pd.DataFrame({"a": np.zeros(frames.MAX_CELLS + 1)}))
        self.assertNotIn("data", got)
        self.assertIn("<data of 500001 cells left out", got["text"])

    def test_subclass(self):
        class Mine(pd.DataFrame):
            pass

        self.assertEqual(self.data(Mine({"a": [1]})), {"a": [1]})

    def test_wide_frame(self):
        columns = [f"column{number}" for number in range(20)]
        got = rich.bundle(pd.DataFrame([range(20)], columns=columns))
        for name in columns:
            self.assertIn(name, got["text"])
        html = rich.bundle(pd.DataFrame([range(30)]))["html"]
        self.assertIn("<th>...</th>", html)
        self.assertIn("1 rows × 30 columns", html)

    def test_others_of_pandas(self):
        frame = pd.DataFrame({"a": [1]})
        self.assertEqual(list(rich.bundle(frame.groupby("a"))), ["text"])
        self.assertEqual(list(rich.bundle(frame.index)), ["text"])

    def test_numpy(self):
        self.assertEqual(rich.bundle(np.arange(3)), {"text": "array([0, 1, 2])"})
        self.assertEqual(rich.bundle(np.float64(1.5)), {"text": "1.5"})
        self.assertEqual(
            rich.bundle({"a": np.int64(3), "b": np.float64("nan"), "c": np.bool_(True)})["json"],
            {"a": 3, "b": None, "c": True},
        )


if __name__ == "__main__":
    unittest.main()
