"""The program under test, seen from the host."""
import json
import os
import subprocess
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
SANDGLASS = os.path.realpath(os.environ.get("SANDGLASS", f"{TOP}/build/bin/sandglass"))
CONTROL = os.path.realpath(
    os.environ.get("SANDGLASS_CONTROL", f"{TOP}/build/dev/tests/sandglass-control")
)
LIBRARY = os.path.realpath(
    os.environ.get(
        "SANDGLASS_LIBRARY", os.path.join(os.path.dirname(SANDGLASS), "../lib/libsandglass.so")
    )
)
CONTROL_LIBRARY = os.path.realpath(
    os.environ.get(
        "SANDGLASS_CONTROL_LIBRARY",
        os.path.join(os.path.dirname(CONTROL), "libsandglass-control.so"),
    )
)
LONG = "ATTACK_LONG" in os.environ
HANG_S = 120  # no run of the suite lasts that long unless it says so


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __str__(self):
        return (
            f"exit status {self.status} after {self.seconds:.1f} s\n"
            f"{self.out[-3000:]}\n{self.err[-1000:]}"
        ).rstrip()


def start(*args, program=SANDGLASS, **popen):
    """`sandglass run ARGS` in the background."""
    popen.setdefault("stdin", subprocess.DEVNULL)
    popen.setdefault("stdout", subprocess.PIPE)
    popen.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([program, "run", *args], **popen)


def run(*args, program=SANDGLASS, timeout=HANG_S, **popen):
    """`sandglass run ARGS` to its end. A run that hangs is ended and has the status 'hangs'."""
    began = time.monotonic()
    p = start(*args, program=program, **popen)
    try:
        out, err = p.communicate(timeout=timeout)
        status = p.returncode
    except subprocess.TimeoutExpired:
        p.terminate()
        out, err = p.communicate()
        status = "hangs"
    return Result(
        status,
        (out or b"").decode(errors="replace"),
        (err or b"").decode(errors="replace"),
        time.monotonic() - began,
    )


def run_json(*args, **rest):
    """The same with --json: the result, and its object (None if there is none)."""
    r = run("--json", *args, **rest)
    try:
        return r, json.loads(r.out)
    except ValueError:
        return r, None
