"""Runs a program of analysis/ as the server does: as a script that finds `parameters`."""
import contextlib
import io
import json
import pathlib
import runpy

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "analysis"


def run(name, parameters):
    """-> what it printed, as JSON strictly has it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(FOLDER / f"{name}.py"), {"parameters": parameters}, "__main__")
    return json.loads(out.getvalue(), parse_constant=refuse)


def refuse(word):
    raise AssertionError(f"{word} is not JSON")
