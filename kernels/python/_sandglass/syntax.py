"""Notebook syntax that is no Python: `%magic`, `%%magic`, `!command`, `x = !command`, `name?`.

The compiler says where the text stops being Python. If that line looks like one of these, it is
replaced by a call, and the compiler is asked again. So nothing inside a string or an
expression is ever taken for a magic.
"""

import re

from .compiler import CALL

_ASSIGN = re.compile(r"^(\s*)([\w.,\s\[\]\"'*()]+?=\s*)([%!])(?!=)(.*)$", re.S)
_LINE = re.compile(r"^(\s*)(%|!!|!)(?![%=])(.*)$", re.S)
_PIP = re.compile(r"^(\s*)(pip3? (?:install|uninstall|list|show|freeze|download)\b.*)$", re.S)
_HELP = re.compile(r"^(\s*)(\?{1,2})?\s*(%{0,2}[\w.*\[\]'\"]+?)(\?{0,2})\s*$")


def dedent(source):
    """Without the indentation of its first line, as code pasted from elsewhere has it."""
    lines = source.lstrip("\n").split("\n")
    skipped = source.count("\n") - (len(lines) - 1)
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    out = [line[len(indent):] if line.startswith(indent) else line for line in lines]
    return "\n" * skipped + "\n".join(out)


def replace(source, error):
    """The source with the magic replaced that the error is about. None: it is about none."""
    head = source.lstrip()
    if head.startswith("%%") and not head.startswith("%%%"):
        return _cell_magic(source)
    lines = source.split("\n")
    at = (error.lineno or 1) - 1
    for index in {min(at, len(lines) - 1), min((error.end_lineno or 1) - 1, len(lines) - 1)}:
        changed = _line(lines, index)
        if changed is not None:
            return "\n".join(changed)
    return None


def _cell_magic(source):
    """`%%name line`, and the rest of the cell as its body; the number of the first body line goes
    along, for tracebacks."""
    skipped = len(source) - len(source.lstrip())
    first, _, body = source.lstrip().partition("\n")
    name, _, line = first[2:].partition(" ")
    before = source[:skipped].count("\n")
    call = f"{CALL}().cell({name.strip()!r}, {line.strip()!r}, {body!r}, {before + 2})"
    return "\n" * before + call + ("" if first.rstrip()[-1:] != ";" else ";")


def _line(lines, index):
    """The lines with one of them replaced, and with it those it is continued on."""
    text, end = lines[index], index + 1
    if not any(kind.match(text) for kind in (_ASSIGN, _LINE, _PIP, _HELP)):
        return None
    while text.endswith("\\") and end < len(lines):
        text = text[:-1] + " " + lines[end].lstrip()
        end += 1
    call = _call(text)
    if call is None:
        return None
    # As many lines as before, so that the numbers of those below stay true.
    return lines[:index] + [call] + [""] * (end - index - 1) + lines[end:]


def _call(text):
    found = _ASSIGN.match(text)
    if found:
        indent, target, mark, rest = found.groups()
        return f"{indent}{target}{_invoke('!!' if mark == '!' else mark, rest)}"
    found = _LINE.match(text)
    if found:
        indent, mark, rest = found.groups()
        return indent + _invoke(mark, rest)
    found = _PIP.match(text)
    if found:
        return found[1] + _invoke("%", found[2].replace("pip3", "pip", 1))
    found = _HELP.match(text)
    if found and (found[2] or found[4]):
        return f"{found[1]}{CALL}().help({found[3]!r}, {len(found[2] or found[4])})"
    return None


def _invoke(mark, rest):
    if mark == "!!":
        return f"{CALL}().output({rest.strip()!r})"
    if mark == "!":
        return f"{CALL}().system({rest.strip()!r})"
    name, _, line = rest.lstrip().partition(" ")
    return f"{CALL}().line({name.strip()!r}, {line.strip()!r})"
