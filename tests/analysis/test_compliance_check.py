"""compliance_check: each check holds and fails; what is wrong with rules is said."""
import unittest

from program import run


def check(records, *rules):
    return run("compliance_check", {"records": records, "rules": list(rules)})


def violations(name, want, *values):
    """Which of the values violate the check."""
    rule = {"id": "r", "field": "f", "check": name}
    if want is not None:
        rule["value"] = want
    found = check([{"f": value} for value in values], rule)["findings"]
    return [values[finding["record"]] for finding in found]


class Checks(unittest.TestCase):
    def test_each(self):
        self.assertEqual(violations("required", None, "x", "", None, 0), ["", None])
        self.assertEqual(violations("type", "number", 1, 1.5, "1", True), ["1", True])
        self.assertEqual(violations("type", "date", "2026-02-28", "2026-02-30", 5),
                         ["2026-02-30", 5])
        self.assertEqual(violations("min", 3, 2, 3, "4"), [2, "4"])
        self.assertEqual(violations("max", 3, 4, 3), [4])
        self.assertEqual(violations("in", ["a", 1], "a", 1, True, "b"), [True, "b"])
        self.assertEqual(violations("not_in", ["a"], "a", "b"), ["a"])
        self.assertEqual(violations("equals", "yes", "yes", "no"), ["no"])
        self.assertEqual(violations("max_length", 2, "ab", "abc", 1), ["abc", 1])
        self.assertEqual(violations("pattern", "[a-z]+", "abc", "abc1", 5), ["abc1", 5])
        self.assertEqual(violations("unique", None, "a", "b", "a", "a"), ["a", "a"])

    def test_what_is_absent_violates_required_only(self):
        for name, want in (("type", "text"), ("min", 1), ("in", []), ("unique", None)):
            self.assertEqual(violations(name, want, None, None), [])

    def test_findings_say_where_and_what(self):
        result = check([{"age": 20}, {"age": 12}],
                       {"id": "adult", "field": "age", "check": "min", "value": 18})
        self.assertEqual(result, {
            "compliant": False, "records": 2, "rules": 1,
            "violations": {"error": 1, "warning": 0, "info": 0},
            "findings": [{"rule": "adult", "severity": "error", "record": 1, "field": "age",
                          "value": 12, "message": "age is not a number of at least 18"}],
            "findingsLeftOut": 0})

    def test_warnings_are_compliant_and_have_own_words(self):
        result = check([{}], {"id": "n", "field": "name", "check": "required",
                              "severity": "warning", "message": "please tell your name"})
        self.assertTrue(result["compliant"])
        self.assertEqual(result["findings"][0]["message"], "please tell your name")

    def test_findings_are_bounded_and_counted(self):
        result = check([{}] * 1500, {"id": "n", "field": "x", "check": "required"})
        self.assertEqual(len(result["findings"]), 1000)
        self.assertEqual(result["findingsLeftOut"], 500)
        self.assertEqual(result["violations"]["error"], 1500)

    def test_no_records_are_compliant(self):
        self.assertTrue(check([], {"id": "n", "field": "x", "check": "required"})["compliant"])


class Refuses(unittest.TestCase):
    def refused(self, parameters, text):
        with self.assertRaisesRegex(ValueError, text) as caught:
            run("compliance_check", parameters)
        self.assertNotIn("\n", str(caught.exception))

    def test_wrong_parameters(self):
        rule = {"id": "a", "field": "f", "check": "required"}
        self.refused("x", "object")
        self.refused({"rules": [rule]}, "'records'")
        self.refused({"records": [], "rules": []}, "not empty")
        self.refused({"records": [], "rules": [rule], "x": 1}, "unknown parameter 'x'")
        self.refused({"records": [], "rules": [rule, rule]}, "two rules have the id 'a'")

    def test_wrong_rules(self):
        for rule, text in (
                (5, "rule 1 must be an object"),
                ({"field": "f", "check": "min"}, "'id'"),
                ({"id": "a", "field": "f", "check": "maximum"}, "unknown check 'maximum'"),
                ({"id": "a", "field": "f", "check": "min", "value": "1"}, "needs a number"),
                ({"id": "a", "field": "f", "check": "required", "value": 1}, "takes no value"),
                ({"id": "a", "field": "f", "check": "in", "value": "x"}, "needs a list"),
                ({"id": "a", "field": "f", "check": "type", "value": ["x"]}, "needs one of"),
                ({"id": "a", "field": "f", "check": "pattern", "value": "("}, "regular expression"),
                ({"id": "a", "field": "f", "check": "unique", "severity": "bad"}, "'severity'"),
                ({"id": "a", "field": "f", "check": "unique", "level": "bad"}, "'level'")):
            self.refused({"records": [], "rules": [rule]}, text)


if __name__ == "__main__":
    unittest.main()
