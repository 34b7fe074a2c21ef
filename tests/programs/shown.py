"""What the pages show is what is run: docs/integrations.md has the files of examples/integrations as its blocks of code, docs/e2b.md a row
for each version of E2B's packages, with the SDK that the lock file puts beneath an interpreter."""
import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    page = (TOP / "docs/integrations.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^```(?:js|bash)\n(.*?)^```$", page, re.M | re.S))
    run = {path.read_text(encoding="utf-8"): path.name for path in (TOP / "examples/integrations").iterdir()}
    yield from (f"docs/integrations.md: examples/integrations/{run[text]} is not shown as it is" for text in run.keys() - shown)
    yield from (f"docs/integrations.md: no file is the block that begins with '{text.splitlines()[0]}'" for text in shown - run.keys())


def matrix():
    page = (TOP / "docs/e2b.md").read_text(encoding="utf-8")
    packages = json.loads((TOP / "tests/programs/package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name in packages[""]["dependencies"]:
        kind, _, version = name.rpartition("-")
        place = f"node_modules/{name}/node_modules/e2b"
        beneath = packages.get(place, packages["node_modules/e2b"])["version"]
        row = {"e2b": f"| {version} |", "code-interpreter": f"| {version} | {beneath} |"}.get(kind)
        if row and not re.search("^" + re.escape(row), page, re.M):
            yield f"docs/e2b.md has no row that begins with '{row}'"


trouble = [*blocks(), *matrix()]
print("\n".join(sorted(trouble)))
sys.exit(bool(trouble))
