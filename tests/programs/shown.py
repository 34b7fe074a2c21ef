"""What docs/integrations.md shows is what is run: its blocks of JavaScript and the files of examples/integrations are the same texts."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs/integrations.md").read_text(encoding="utf-8")

shown = set(re.findall(r"^```(?:js|bash)\n(.*?)^```$", PAGE, re.M | re.S))
run = {path.read_text(encoding="utf-8"): path.name for path in (TOP / "examples/integrations").iterdir()}
trouble = [f"examples/integrations/{run[text]} is not shown as it is" for text in run.keys() - shown]
trouble += [f"no file is the block that begins with '{text.splitlines()[0]}'" for text in shown - run.keys()]
print("\n".join(sorted(trouble)))
sys.exit(bool(trouble))
