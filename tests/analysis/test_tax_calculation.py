"""tax_calculation: brackets, rounding, what it refuses."""
import unittest

from program import run

BRACKETS = [{"upTo": 10000, "rate": 0.1}, {"upTo": 40000, "rate": 0.2},
            {"upTo": None, "rate": 0.4}]


def tax(income, **more):
    return run("tax_calculation", {"income": income, "brackets": BRACKETS, **more})


class Calculates(unittest.TestCase):
    def test_each_part_at_its_rate(self):
        result = tax(50000)
        self.assertEqual([part["tax"] for part in result["brackets"]], [1000, 6000, 4000])
        self.assertEqual(result["tax"], 11000)
        self.assertEqual(result["netIncome"], 39000)
        self.assertEqual(result["effectiveRate"], 0.22)
        self.assertEqual(result["marginalRate"], 0.4)

    def test_at_a_border_the_lower_rate_holds(self):
        result = tax(10000)
        self.assertEqual((result["tax"], result["marginalRate"]), (1000, 0.1))
        self.assertEqual(tax(10000.01)["marginalRate"], 0.2)

    def test_nothing_earned(self):
        result = tax(0)
        self.assertEqual((result["tax"], result["effectiveRate"], result["marginalRate"]),
                         (0, 0, 0))

    def test_deductions_and_credits(self):
        result = tax(50000, deductions=[{"name": "a", "amount": 6000}, {"amount": 4000}],
                     credits=500)
        self.assertEqual(result["taxableIncome"], 40000)
        self.assertEqual(result["taxBeforeCredits"], 7000)
        self.assertEqual(result["tax"], 6500)

    def test_neither_goes_below_zero(self):
        result = tax(100, deductions=200, credits=1000)
        self.assertEqual((result["taxableIncome"], result["tax"]), (0, 0))

    def test_rounding_is_what_it_says(self):
        def rounded(rounding, decimals=2):
            return run("tax_calculation", {"income": 0.25, "rounding": rounding,
                                           "decimals": decimals,
                                           "brackets": [{"upTo": None, "rate": 0.1}]})["tax"]
        self.assertEqual(rounded("half_up"), 0.03)
        self.assertEqual(rounded("half_even"), 0.02)
        self.assertEqual(rounded("down"), 0.02)
        self.assertEqual(rounded("half_up", 3), 0.025)
        self.assertEqual(rounded("half_up", 0), 0)

    def test_decimals_are_exact(self):
        # In binary fractions 1.1 * 0.15 is a little less than 0.165.
        result = run("tax_calculation", {"income": 1.1, "brackets": [{"upTo": None, "rate": 0.15}]})
        self.assertEqual(result["tax"], 0.17)

    def test_large_amounts(self):
        result = run("tax_calculation", {"income": 999999999999.999, "decimals": 3,
                                         "brackets": [{"upTo": None, "rate": 1}]})
        self.assertEqual(result["tax"], 999999999999.999)


class Refuses(unittest.TestCase):
    def refused(self, parameters, text):
        with self.assertRaisesRegex(ValueError, text) as caught:
            run("tax_calculation", parameters)
        self.assertNotIn("\n", str(caught.exception))

    def test_wrong_parameters(self):
        self.refused(None, "object")
        self.refused({"income": 1}, "'brackets' is missing")
        self.refused({"brackets": BRACKETS}, "'income' is missing")
        for income, text in ((-1, "from 0"), ("1", "number"), (True, "number"), (1e13, "from 0")):
            self.refused({"income": income, "brackets": BRACKETS}, text)
        self.refused({"income": 1, "brackets": BRACKETS, "year": 2026}, "unknown parameter 'year'")
        self.refused({"income": 1, "brackets": BRACKETS, "decimals": 4}, "'decimals'")
        self.refused({"income": 1, "brackets": BRACKETS, "rounding": "up"}, "'rounding'")
        self.refused({"income": 1, "brackets": BRACKETS, "credits": [1]}, "'credits'")

    def test_wrong_brackets(self):
        for brackets, text in (
                ([], "not empty"),
                ([{"upTo": 1}], "bracket 1"),
                ([{"upTo": 1, "rate": 0.1}], "last bracket"),
                ([{"upTo": None, "rate": 0.1}, {"upTo": None, "rate": 0.1}], "last bracket"),
                ([{"upTo": None, "rate": 1.1}], "rate of bracket 1"),
                ([{"upTo": 5, "rate": 0.1}, {"upTo": 5, "rate": 0.1}, {"upTo": None, "rate": 0}],
                 "bracket 2 must be greater")):
            self.refused({"income": 1, "brackets": brackets}, text)


if __name__ == "__main__":
    unittest.main()
