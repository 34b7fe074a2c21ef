"""B01: the host's files do not show, and neither does anything in them."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, script  # noqa: E402
from oracle import Canary  # noqa: E402
from program import run  # noqa: E402

# The needles come in halves, so that the script does not find itself.
SEARCH = """
import os, stat

needles = [a + b for a, b in {halves!r}]
hits, seen = [], 0

def look(path):
    global seen
    try:
        st = os.lstat(path)
        if any(n in path for n in needles):
            hits.append(path)
        if stat.S_ISREG(st.st_mode) and (st.st_size < 1 << 20 or path.startswith("/proc")):
            with open(path, "rb", buffering=0) as f:
                seen += 1
                data = f.read(1 << 16)
                if any(n.encode() in data for n in needles):
                    hits.append(path)
    except OSError:
        pass

def walk(top, skip=()):
    for where, dirs, files in os.walk(top):
        dirs[:] = [d for d in dirs if os.path.join(where, d) not in skip]
        for name in dirs + files:
            look(os.path.join(where, name))

walk("/", skip=("/proc", "/usr"))
for where, dirs, files in os.walk("/usr"):
    hits += [os.path.join(where, n) for n in dirs + files if any(x in n for x in needles)]
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "mountinfo", "maps", "comm"):
        look(f"/proc/{{pid}}/{{name}}")
    for name in ("root", "cwd"):
        for path in ("root", "var/tmp", "tmp"):
            walk(f"/proc/{{pid}}/{{name}}/{{path}}")
for name in os.listdir("/proc"):
    if not name.isdigit():
        look(f"/proc/{{name}}")
for hit in sorted(set(hits)):
    print("HIT", hit)
print("SEEN", seen)
"""


def search(canary, user, *options):
    halves = [(s[:7], s[7:]) for s in (canary.name, canary.secret)]
    with script(SEARCH.format(halves=halves)) as f:
        r = run("--user", user, "--timeout", "60s", *options, "-f", f.name)
    hits = [line for line in r.out.splitlines() if line.startswith("HIT")]
    if r.status != 0 or "SEEN" not in r.out:
        hits.append(f"the search did not come to its end: {r}")
    return hits


canary = Canary()
try:
    for user in ("user", "root"):
        check(f"B01 the host's files cannot be found ({user})", search(canary, user))
    # The search must be able to find: the tree is shown on purpose.
    with tempfile.TemporaryDirectory(prefix="sandglass-attack-", dir="/tmp") as shown:
        os.chmod(shown, 0o755)
        with open(f"{shown}/CANARY-{canary.name}", "w") as f:
            f.write(canary.secret)
        found = search(canary, "user", "--mount", f"{shown}:/mnt/shown:ro")
        check(
            "B01 control with a mount that shows it is noticed",
            [] if any("/mnt/shown" in hit for hit in found) else ["nothing was found", *found],
        )
    check("B01 the canaries are untouched", canary.wrong())
finally:
    canary.remove()
finish()
