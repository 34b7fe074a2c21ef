"""B14: a working directory cannot be a way out."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from program import run  # noqa: E402

SHOW = """
import os
print("PLACE", os.getcwd())
climbed = os.path.realpath("../../../../../../../../..")
os.chdir("../../../../../../../../..")
print("SAME", os.path.samestat(os.stat("."), os.stat("/")), os.path.exists("root"))
"""
PLACES = [
    "/proc/self/fd/3",
    "/proc/self/fd/7",
    "/proc/self/cwd",
    "/proc/self/cwd/..",
    "/proc/1/cwd/..",
    "/proc/1/root",
    "/proc/1/fd/3",
    "/proc/self/root/..",
    "/../../..",
    "/tmp/../../..",
    "/nowhere",
    "/proc/thread-self/root/root",
    "/dev/fd/3",
    "/dev/null",
    "/usr/bin/env",
    "relative",
    "",
    "/" + "x" * 5000,
]

for user in ("user", "root"):
    wrong = []
    with script(SHOW) as f:
        for place in PLACES:
            r = run("--user", user, "--cwd", place, "-f", f.name)
            if r.status == 0 and "SAME True True" not in r.out:
                wrong.append(f"{place[:40]!r} leads out: {r}")
            elif r.status not in (0, 2, 125) or r.status != 0 and len(r.err.splitlines()) != 1:
                wrong.append(f"{place[:40]!r} has no clear answer: {r}")
    check(f"B14 odd working directories stay inside or are refused ({user})", wrong)

# A directory that is gone by the time that it is used.
r = run(
    "--user",
    "root",
    "--",
    "sh",
    "-c",
    "mkdir /tmp/gone && cd /tmp/gone && rmdir /tmp/gone; ls ..; cd .. 2>/dev/null; ls / | head -3",
)
check("B14 a deleted directory leads nowhere", [] if r.status == 0 and "bin" in r.out else [r])
finish()
