"""Reads tables of cells: see README.md beside it.

    table.py FILE    the table as JSON, for the runner that is no Python program"""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
FIELDS = ("text html markdown svg png jpeg pdf latex javascript json data chart extra").split()
JSON = ("json", "data", "chart", "extra")
SECTIONS = {"stdout", "stderr", "error", "traceback", "displayed", "once", "status", "sdk", *FIELDS}
HOW = ("has", "lacks")


class BadTable(Exception):
    pass


def section(title, lines, where):
    """{name, field, how, value}: `displayed html has` is (displayed, html, has)."""
    words = title.split()
    how = words.pop() if words[-1] in HOW else "is"
    name, field = words[0], words[1] if words[1:] else None
    if name not in SECTIONS or words[2:] or (field and (name != "displayed" or field not in FIELDS)):
        raise BadTable(f"{where}: no section is called {title!r}")
    text = "\n".join(lines).strip("\n")
    value = [line for line in text.split("\n") if line] if how != "is" else text
    if (field or name) in JSON and how != "lacks":
        value = json.loads(text)
    elif name == "status":
        value = int(text)
    return {"name": name, "field": field, "how": how, "value": value}


def parse(text, where="table"):
    """{oneKernel, cells: [{name, line, goesOn, code, wants}]}"""
    cells, wants, lines, title, one_kernel = [], None, [], None, False

    def close():
        if title is not None:
            wants.append(section(title, lines, f"{where}: {cells[-1]['name']}"))
        elif cells:
            cells[-1]["code"] = "\n".join(lines).strip("\n")

    for number, line in enumerate(text.splitlines(), 1):
        begin = re.match(r"(====|\+\+\+\+) (.+)$", line)
        if begin:
            close()
            wants, lines, title = [], [], None
            cells.append({"name": begin[2], "line": number, "goesOn": begin[1] == "++++", "wants": wants})
        elif cells and line.startswith("---- "):
            close()
            lines, title = [], line[5:].strip()
        elif cells and not line.startswith("# ----"):
            lines.append(line)
        elif line == "one kernel":
            one_kernel = True
        elif line and not line.startswith("#"):
            raise BadTable(f"{where}:{number}: {line!r} is before the first cell")
    close()
    return {"oneKernel": one_kernel, "cells": cells}


def load(language):
    with open(f"{HERE}/{language}.cells", encoding="utf-8") as f:
        return parse(f.read(), f"{language}.cells")


if __name__ == "__main__":
    json.dump(load(sys.argv[1]), sys.stdout)
