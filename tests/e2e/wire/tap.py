"""Tests as functions: `@test("what must be so")` above one registers it; an assertion that fails, or any
other exception, is a failure."""
import os
import sys
import traceback

tests = []


def test(name):
    def register(body):
        tests.append((name, body))
        return body

    return register


def same(got, wanted, what="value"):
    assert got == wanted, f"{what}: expected {str(wanted)[:400]!r}, got {str(got)[:400]!r}"


def explain(error):
    lines = [f"{type(error).__name__}: {error}"]
    for frame in traceback.extract_tb(error.__traceback__):
        if os.path.basename(frame.filename) != "tap.py":
            lines.append(f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}")
    return lines


def main(_modules, pattern):
    from wire import http

    chosen = [t for t in tests if pattern.search(t[0])]
    failed = 0
    for number, (name, body) in enumerate(chosen, 1):
        try:
            body()
        except Exception as error:
            failed += 1
            print(f"not ok {number} - {name}")
            for line in "\n".join(explain(error)).splitlines()[:30]:
                print("#", line)
        else:
            print(f"ok {number} - {name}")
        sys.stdout.flush()
        http.end_all()
    http.end_common()
    print(f"1..{len(chosen)}")
    sys.exit(1 if failed else 0)
