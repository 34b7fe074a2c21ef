"""Runs the cells of tests/cells by `sandglass run`: those that need no cell before them.

    cells.py SANDGLASS LANGUAGE...

Prints `ok - NAME` or `not ok - NAME`, then comments."""
import concurrent.futures
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, f"{HERE}/../cells")
import table  # noqa: E402

SECONDS = 60
AT_ONCE = 2


class Run:
    def __init__(self, program, language, code):
        command = [program, "run", "--language", language, code]
        try:
            p = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired as e:
            self.status, self.out, self.err = None, repr(e.stdout), repr(e.stderr)
        else:
            self.status = p.returncode
            self.out, self.err = (s.decode(errors="replace") for s in (p.stdout, p.stderr))


def expected_output(wants):
    """All of standard output, if the table says it all; else None."""
    if "once" in wants["is"]:
        return wants["is"]["once"]
    known = ("stdout", "displayed", "text")
    vague = [name for how in ("has", "lacks") for name in (*known, "once") if name in wants[how]]
    shown = any(name in wants["is"] or name in wants["has"] for name in table.FIELDS)
    if vague or (shown and "text" not in wants["is"]) or wants["displayed"] and "displayed" not in wants["is"]:
        return None
    parts = [wants["is"][name] for name in known if name in wants["is"]]
    return "\n".join(part for part in parts if part)


def sort_wants(cell):
    wants = {"is": {}, "has": {}, "lacks": {}, "displayed": False}
    for w in cell["wants"]:
        wants["displayed"] |= w["name"] == "displayed"
        if not w["field"]:
            wants[w["how"]][w["name"]] = w["value"]
    return wants


def complaints(cell, run):
    """What is wrong with a run: a list, empty if nothing is."""
    wants = sort_wants(cell)
    whole, wrong = expected_output(wants), []
    failed = "error" in wants["is"] or "error" in wants["has"]
    status = wants["is"].get("status", 1 if failed else 0)
    if run.status != status:
        wrong.append(f"status {run.status} is not {status}")
    if whole is not None and run.out.rstrip("\n") != whole:
        wrong.append(f"stdout is not {whole!r}")
    for name in ("stdout", "text", "once"):
        wrong += [f"stdout has no {line!r}" for line in wants["has"].get(name, ()) if line not in run.out]
        wrong += [f"stdout has {line!r}" for line in wants["lacks"].get(name, ()) if line in run.out]
    wrong += error_complaints(wants, failed, status, run.err)
    if wrong:
        wrong += [f"stdout: {run.out[:1500]!r}", f"stderr: {run.err[:1500]!r}"]
    return wrong


def error_complaints(wants, failed, status, err):
    wrong = []
    has = [*wants["has"].get("stderr", ()), *wants["has"].get("traceback", ())]
    if failed and status == 1:
        has += wants["has"].get("error", ()) or wants["is"]["error"].split(": ", 1)
    elif not failed and "stderr" not in wants["has"] and err.rstrip("\n") != wants["is"].get("stderr", ""):
        wrong.append(f"stderr is not {wants['is'].get('stderr', '')!r}")
    wrong += [f"stderr has no {line!r}" for line in has if line not in err]
    for name in ("stderr", "traceback"):
        wrong += [f"stderr has {line!r}" for line in wants["lacks"].get(name, ()) if line in err]
    return wrong


def cells(languages):
    for language in languages:
        for cell in table.load(language)["cells"]:
            if not cell["goesOn"] and not any(w["name"] == "sdk" for w in cell["wants"]):
                yield language, cell


def main(program, *languages):
    todo = list(cells(languages))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = pool.map(lambda job: Run(program, job[0], job[1]["code"]), todo)
        for (language, cell), run in zip(todo, runs):
            wrong = complaints(cell, run)
            print(f"{'not ok' if wrong else 'ok'} - {language}: {cell['name']}", flush=True)
            for line in "\n".join(wrong).splitlines():
                print("#", line)


main(*sys.argv[1:])
