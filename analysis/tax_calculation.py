"""Tax by progressive brackets, exactly: rounding happens once, on what is told. See README.md."""
import decimal
import json
from decimal import Decimal

AMOUNT_MAX = Decimal(10) ** 12  # with three decimals still exact as a number of JSON
ROUNDINGS = {
    "half_up": decimal.ROUND_HALF_UP,
    "half_even": decimal.ROUND_HALF_EVEN,
    "down": decimal.ROUND_DOWN,
}
RATE_DIGITS = Decimal("0.000001")


def amount(what, value, most=AMOUNT_MAX):
    """A number of the parameters as it was written there."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{what} must be a number")
    number = Decimal(repr(value))
    if not 0 <= number <= most:
        raise ValueError(f"{what} must be from 0 to {most}")
    return number


def total(what, value):
    """A number, or the sum of a list of {name, amount}."""
    if not isinstance(value, list):
        return amount(f"'{what}'", value)
    for item in value:
        if not isinstance(item, dict) or set(item) - {"name", "amount"} or "amount" not in item:
            raise ValueError(f"'{what}' must be a number or a list of {{name, amount}}")
    return sum((amount(f"an amount of '{what}'", item["amount"]) for item in value), Decimal(0))


def read_brackets(value):
    """-> [(lower, upper or None, rate)]"""
    if not isinstance(value, list) or not value:
        raise ValueError("'brackets' must be a list of {upTo, rate} that is not empty")
    brackets = []
    lower = Decimal(0)
    for i, bracket in enumerate(value):
        if not isinstance(bracket, dict) or set(bracket) != {"upTo", "rate"}:
            raise ValueError(f"bracket {i + 1} must be {{upTo, rate}}")
        rate = amount(f"the rate of bracket {i + 1}", bracket["rate"], Decimal(1))
        last = i == len(value) - 1
        if (bracket["upTo"] is None) != last:
            raise ValueError("the last bracket, and only that, must have upTo null")
        upper = None if last else amount(f"upTo of bracket {i + 1}", bracket["upTo"])
        if upper is not None and upper <= lower:
            raise ValueError(f"upTo of bracket {i + 1} must be greater than the one before")
        brackets.append((lower, upper, rate))
        lower = upper
    return brackets


def read(parameters):
    if not isinstance(parameters, dict):
        raise ValueError("parameters must be an object with 'income' and 'brackets'")
    unknown = set(parameters) - {"income", "brackets", "deductions", "credits", "decimals",
                                 "rounding"}
    if unknown:
        raise ValueError(f"unknown parameter '{sorted(unknown)[0]}'")
    for name in ("income", "brackets"):
        if name not in parameters:
            raise ValueError(f"'{name}' is missing")
    decimals = parameters.get("decimals", 2)
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= 3:
        raise ValueError("'decimals' must be 0, 1, 2 or 3")
    rounding = parameters.get("rounding", "half_up")
    if rounding not in ROUNDINGS:
        raise ValueError("'rounding' must be half_up, half_even or down")
    return decimals, ROUNDINGS[rounding]


def calculate(parameters):
    decimals, rounding = read(parameters)
    unit = Decimal(1).scaleb(-decimals)

    def told(value):
        number = value.quantize(unit, rounding=rounding)
        return int(number) if decimals == 0 else float(number)

    income = amount("'income'", parameters["income"])
    deductions = total("deductions", parameters.get("deductions", 0))
    credits = total("credits", parameters.get("credits", 0))
    taxable = max(income - deductions, Decimal(0))
    gross = Decimal(0)
    marginal = Decimal(0)
    parts = []
    for lower, upper, rate in read_brackets(parameters["brackets"]):
        inside = max(min(taxable, upper if upper is not None else taxable) - lower, Decimal(0))
        if inside > 0:
            marginal = rate
        gross += inside * rate
        parts.append({"from": told(lower), "upTo": None if upper is None else told(upper),
                      "rate": float(rate), "amount": told(inside), "tax": told(inside * rate)})
    tax = max(gross - credits, Decimal(0))
    effective = (tax / income).quantize(RATE_DIGITS, rounding=rounding) if income else Decimal(0)
    return {
        "income": told(income),
        "deductions": told(deductions),
        "taxableIncome": told(taxable),
        "brackets": parts,
        "taxBeforeCredits": told(gross),
        "credits": told(credits),
        "tax": told(tax),
        "netIncome": told(income - tax),
        "effectiveRate": float(effective),
        "marginalRate": float(marginal),
    }


if __name__ == "__main__":
    with decimal.localcontext(prec=60):
        print(json.dumps(calculate(parameters)))
