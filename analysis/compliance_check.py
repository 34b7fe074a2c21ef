"""Checks records against rules and lists what violates them. See README.md."""
import datetime
import json
import re

FINDINGS_MAX = 1000
SEVERITIES = ("error", "warning", "info")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_date(value):
    try:
        datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


TYPES = {
    "number": is_number,
    "text": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "date": is_date,
}


# ---- values of rules: each says what is wrong with it, or nothing --------------------------------

def no_value(value):
    return None if value is None else "takes no value"


def a_number(value):
    return None if is_number(value) else "needs a number as value"


def a_list(value):
    return None if isinstance(value, list) else "needs a list as value"


def a_type(value):
    return None if isinstance(value, str) and value in TYPES else f"needs one of {', '.join(TYPES)} as value"


def a_pattern(value):
    try:
        re.compile(value)
    except (re.error, TypeError):
        return "needs a regular expression as value"
    return None


def any_value(_value):
    return None


# ---- checks: whether a value is as the rule wants ------------------------------------------------

def same(a, b):
    """As JSON has it: true is not 1."""
    return isinstance(a, bool) == isinstance(b, bool) and a == b


CHECKS = {
    # name: (what its value must be, whether it holds, what is said if not)
    "required": (no_value, None, "is missing"),
    "type": (a_type, lambda v, want: TYPES[want](v), "is not of type {want}"),
    "min": (a_number, lambda v, want: is_number(v) and v >= want,
            "is not a number of at least {want}"),
    "max": (a_number, lambda v, want: is_number(v) and v <= want,
            "is not a number of at most {want}"),
    "in": (a_list, lambda v, want: any(same(v, w) for w in want), "is not one of {want}"),
    "not_in": (a_list, lambda v, want: not any(same(v, w) for w in want), "is one of {want}"),
    "equals": (any_value, same, "is not {want}"),
    "max_length": (a_number, lambda v, want: isinstance(v, str) and len(v) <= want,
                   "is not a text of at most {want} characters"),
    "pattern": (a_pattern, lambda v, want: isinstance(v, str) and re.fullmatch(want, v) is not None,
                "does not match {want}"),
    "unique": (no_value, None, "has the value of an earlier record"),
}


def read_rule(i, rule):
    where = f"rule {i + 1}"
    if not isinstance(rule, dict):
        raise ValueError(f"{where} must be an object")
    unknown = set(rule) - {"id", "field", "check", "value", "severity", "message"}
    if unknown:
        raise ValueError(f"{where}: unknown field '{sorted(unknown)[0]}'")
    for name in ("id", "field", "check"):
        if not isinstance(rule.get(name), str) or not rule[name]:
            raise ValueError(f"{where}: '{name}' must be a text that is not empty")
    if rule["check"] not in CHECKS:
        raise ValueError(f"{where}: unknown check '{rule['check']}': use {', '.join(CHECKS)}")
    wrong = CHECKS[rule["check"]][0](rule.get("value"))
    if wrong:
        raise ValueError(f"{where}: the check {rule['check']} {wrong}")
    if rule.get("severity", "error") not in SEVERITIES:
        raise ValueError(f"{where}: 'severity' must be error, warning or info")
    if not isinstance(rule.get("message", ""), str):
        raise ValueError(f"{where}: 'message' must be a text")


def read(parameters):
    if not isinstance(parameters, dict):
        raise ValueError("parameters must be an object with 'records' and 'rules'")
    unknown = set(parameters) - {"records", "rules"}
    if unknown:
        raise ValueError(f"unknown parameter '{sorted(unknown)[0]}'")
    records, rules = parameters.get("records"), parameters.get("rules")
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise ValueError("'records' must be a list of objects")
    if not isinstance(rules, list) or not rules:
        raise ValueError("'rules' must be a list that is not empty")
    ids = set()
    for i, rule in enumerate(rules):
        read_rule(i, rule)
        if rule["id"] in ids:
            raise ValueError(f"two rules have the id '{rule['id']}'")
        ids.add(rule["id"])
    return records, rules


def violates(rule, value, seen):
    check = rule["check"]
    if check == "required":
        return value is None or value == ""
    if value is None:
        return False
    if check == "unique":
        key = json.dumps(value, sort_keys=True)
        before = key in seen
        seen.add(key)
        return before
    return not CHECKS[check][1](value, rule.get("value"))


def check(parameters):
    records, rules = read(parameters)
    counts = dict.fromkeys(SEVERITIES, 0)
    findings = []
    for rule in rules:
        severity, seen = rule.get("severity", "error"), set()
        want = json.dumps(rule.get("value"), ensure_ascii=False)
        message = (rule.get("message") or
                   f"{rule['field']} {CHECKS[rule['check']][2].format(want=want)}")
        for i, record in enumerate(records):
            value = record.get(rule["field"])
            if not violates(rule, value, seen):
                continue
            counts[severity] += 1
            if len(findings) < FINDINGS_MAX:
                findings.append({"rule": rule["id"], "severity": severity, "record": i,
                                 "field": rule["field"], "value": value,
                                 "message": message})
    return {
        "compliant": counts["error"] == 0,
        "records": len(records),
        "rules": len(rules),
        "violations": counts,
        "findings": findings,
        "findingsLeftOut": sum(counts.values()) - len(findings),
    }


if __name__ == "__main__":
    print(json.dumps(check(parameters), ensure_ascii=False))
