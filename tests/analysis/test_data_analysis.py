"""data_analysis: numbers that were worked out by hand."""
import unittest

from program import run

SALES = [
    {"region": "north", "amount": 10, "units": 1},
    {"region": "south", "amount": 20, "units": 2},
    {"region": "north", "amount": 30, "units": 3},
    {"region": "south", "amount": 40, "units": 4, "note": "last"},
]


def analyse(**parameters):
    return run("data_analysis", parameters)


class Describes(unittest.TestCase):
    def test_numbers(self):
        amount = analyse(records=SALES)["columns"]["amount"]
        self.assertAlmostEqual(amount.pop("std"), 12.909944487358056)
        self.assertEqual(amount, {"type": "number", "count": 4, "missing": 0, "sum": 100,
                                  "mean": 25, "min": 10, "q1": 17.5, "median": 25, "q3": 32.5,
                                  "max": 40})

    def test_categories_and_missing_values(self):
        columns = analyse(records=SALES + [{"region": None, "flag": True}])["columns"]
        self.assertEqual(columns["region"], {
            "type": "category", "count": 4, "missing": 1, "distinct": 2,
            "top": [{"value": "north", "count": 2}, {"value": "south", "count": 2}]})
        self.assertEqual(columns["note"]["missing"], 4)
        self.assertEqual(columns["flag"]["type"], "category")

    def test_one_value_has_no_deviation(self):
        column = analyse(records=[{"x": 7}])["columns"]["x"]
        self.assertIsNone(column["std"])
        self.assertEqual((column["q1"], column["median"], column["q3"]), (7, 7, 7))

    def test_mixed_columns_are_categories(self):
        column = analyse(records=[{"x": 7}, {"x": "seven"}])["columns"]["x"]
        self.assertEqual(column["type"], "category")

    def test_chosen_columns_in_their_order(self):
        self.assertEqual(list(analyse(records=SALES, columns=["units", "amount"])["columns"]),
                         ["units", "amount"])

    def test_what_is_too_large_is_null(self):
        column = analyse(records=[{"x": 1e308}, {"x": 1e308}])["columns"]["x"]
        self.assertIsNone(column["sum"])

    def test_groups(self):
        result = analyse(records=SALES, columns=["amount"], groupBy="region")
        self.assertEqual(result["groups"][0], {
            "key": "north", "count": 2,
            "columns": {"amount": {"count": 2, "sum": 40, "mean": 20, "min": 10, "max": 30}}})

    def test_groups_without_values(self):
        result = analyse(records=[{"k": "a", "x": 1}, {"k": "b"}], groupBy="k")
        self.assertEqual(result["groups"][1]["columns"]["x"],
                         {"count": 0, "sum": 0, "mean": None, "min": None, "max": None})

    def test_correlations(self):
        records = [{"a": i, "b": 2 * i, "c": -i, "d": 5} for i in range(5)]
        pairs = {(c["x"], c["y"]): c["r"]
                 for c in analyse(records=records, correlations=True)["correlations"]}
        self.assertAlmostEqual(pairs["a", "b"], 1)
        self.assertAlmostEqual(pairs["a", "c"], -1)
        self.assertIsNone(pairs["a", "d"])


class Refuses(unittest.TestCase):
    def refused(self, parameters, text):
        with self.assertRaisesRegex(ValueError, text) as caught:
            run("data_analysis", parameters)
        self.assertNotIn("\n", str(caught.exception))

    def test_wrong_parameters(self):
        self.refused([], "object")
        self.refused({}, "'records' must be a list")
        self.refused({"records": [1]}, "'records' must be a list of objects")
        self.refused({"records": []}, "empty")
        self.refused({"records": SALES, "what": 1}, "unknown parameter 'what'")
        self.refused({"records": SALES, "columns": "amount"}, "list of names")
        self.refused({"records": SALES, "columns": ["price"]}, "'price'")
        self.refused({"records": SALES, "groupBy": "price"}, "'price'")
        self.refused({"records": SALES, "groupBy": ["region"]}, "no record has")
        self.refused({"records": SALES, "correlations": 1}, "true or false")


if __name__ == "__main__":
    unittest.main()
