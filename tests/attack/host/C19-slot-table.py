"""C19: the table of id ranges is damaged in every way a crash can damage it. Runs go on working.

The table is never replaced, only written to: others may have it open and locked."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import run, start  # noqa: E402

TABLE = "/run/sandglass/slots"


def works():
    r = run("--user", "root", "--", "id", "-u")
    return [] if r.status == 0 and r.out == "0\n" else [r]


def write(data, at=0):
    with open(TABLE, "r+b") as f:
        f.seek(at)
        f.write(data)


wrong = works()
DAMAGE = {
    "emptied": lambda: os.truncate(TABLE, 0),
    "all ones": lambda: write(b"\x01" * 512),
    "all 0xff": lambda: write(b"\xff" * 512),
    "random bytes": lambda: write(os.urandom(512)),
    "text": lambda: write(b"not a table\n" * 40),
    "far too long": lambda: os.truncate(TABLE, 1 << 30),
    "ending in the middle": lambda: os.truncate(TABLE, 3),
    "cleared": lambda: write(bytes(512)),
}
for how, damage in DAMAGE.items():
    damage()
    wrong += [f"{how}: {r}" for r in works()]
for at in range(16):
    for bit in range(8):
        write(bytes([1 << bit]), at)
    wrong += [f"byte {at}: {r}" for r in works()]
check("C19 runs work with a damaged table of id ranges", wrong)

# Damage while sandboxes live: they are protected by locks, not by the bytes.
living = [start("--", "sh", "-c", "id -u; sleep 2; id -u") for _ in range(3)]
for data in (bytes(512), b"\xff" * 512, os.urandom(512), bytes(512)):
    write(data)
    wrong += works()
for p in living:
    out, err = p.communicate(timeout=30)
    if p.returncode != 0 or out != b"1000\n1000\n":
        wrong.append(f"a living sandbox was hit: {p.returncode} {out} {err}")
check("C19 living sandboxes do not notice", wrong)
with open(TABLE, "rb") as f:
    os.truncate(TABLE, min(os.fstat(f.fileno()).st_size, 512))
finish()
