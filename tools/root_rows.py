"""The rows of docs/security.md that count the lines that run as root: a folder, perhaps without some files, or a file. `x`
is x.c and x.h, `x.c` the one alone."""
import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/security.md"
ROW = re.compile(r"^\| `(src/[\w/.]+)`(?: without ([^|]*?))? \| ([\d,]+) \|", re.M)


class Row(NamedTuple):
    name: str
    stated: int
    line: int
    files: list
    left_out: list


def rows():
    text = PAGE.read_text()
    for match in ROW.finditer(text):
        own, without = ROOT / match[1], set(re.findall(r"`([\w.]+)`", match[2] or ""))
        of = own.glob("*.[ch]") if own.is_dir() else {own, own.with_suffix(".c"), own.with_suffix(".h")}
        files = [p for p in of if p.is_file() and (own.is_dir() or own.suffix in ("", p.suffix))]
        yield Row(match[1], int(match[3].replace(",", "")), text.count("\n", 0, match.start()) + 1,
                  [p for p in files if not {p.stem, p.name} & without], [p for p in files if {p.stem, p.name} & without])
