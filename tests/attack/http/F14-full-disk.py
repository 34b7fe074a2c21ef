"""F14, D19: uploads at the edge of the disk, one and many at a time, and packed ones far beyond it."""
import concurrent.futures
import gzip
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, rss_mib  # noqa: E402
from server import Site, answered  # noqa: E402

MIB = 1 << 20
LEFT = "python3 -c \"import os; s = os.statvfs('/'); print(s.f_bavail * s.f_frsize)\""
PARTS = "find / -xdev \\( -name '*.part' -o -name '*.over' \\) 2>/dev/null | wc -l"


def edge(sandbox):
    left, wrong = int(sandbox.says(LEFT)), []
    wrong += answered("all that is left and a page", sandbox.put("big", bytes(left + 8192)), 507)
    if sandbox.says("ls -A big 2>/dev/null") or int(sandbox.says(LEFT)) < left - 64 * 1024:
        wrong.append("a part of it was left behind")
    wrong += answered("almost all that is left", sandbox.put("big", bytes(left - 256 * 1024)), 200)
    wrong += answered("the next one", sandbox.put("more", bytes(MIB)), 507)
    wrong += answered("over a file that is there", sandbox.put("big", bytes(left + 8192)), 507)
    if sandbox.says("stat -c %h big") != "1\n":
        wrong.append("the file that was there is gone")
    sandbox.says("rm big")
    return wrong


def bombs(sandbox):
    """Small on the wire, larger than the disk when unpacked; one inside another is not unpacked."""
    wrong, bomb = [], gzip.compress(bytes(256 * MIB))
    a = sandbox.put("bomb", bomb, **{"Content-Encoding": "gzip"})
    wrong += answered(f"a bomb of {len(bomb)} bytes", a, 507)
    a = sandbox.put("nested", gzip.compress(bomb), **{"Content-Encoding": "gzip"})
    wrong += answered("a bomb in a bomb", a, 200)
    if sandbox.says("stat -c '%n %s' bomb nested 2>/dev/null") != f"nested {len(bomb)}\n":
        wrong.append(f"left behind: {sandbox.says('ls -la')}")
    a = sandbox.put("members", gzip.compress(b"") * 100000, **{"Content-Encoding": "gzip"})
    wrong += answered("100,000 empty members", a, 200, 400)
    sandbox.says("rm -f nested members")
    return wrong


def many(sandbox):
    left = int(sandbox.says(LEFT))
    size = left // 10
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda i: sandbox.put(f"m{i}", bytes(size)), range(20)))
    wrong = [w for a in answers for w in answered("one of 20", a, 200, 507)]
    good = sum(a.status == 200 for a in answers)
    whole = sandbox.says(f"find . -name 'm*' -size {size}c | wc -l").strip()
    there = sandbox.says("ls | grep -c '^m'").strip()
    if not 1 <= good <= 10 or whole != str(good) or there != str(good):
        wrong.append(f"{good} were taken, {there} are there, {whole} whole")
    sandbox.says("rm -f m*")
    return wrong, f"{good} of 20 were taken"


with Site("--sandbox-disk", "64M") as site:
    sandbox = site.create()
    before = rss_mib(site.front())
    check("F14 what does not fit is answered 507 and leaves nothing", edge(sandbox))
    check("F14 packed bodies are held to the same limit", bombs(sandbox))
    wrong, note = many(sandbox)
    check("F14 many at once never pass the limit", wrong, note)
    check("F14 no piece of a file is left", [] if sandbox.says(PARTS) == "0\n" else [sandbox.says(PARTS)])
    check("F14 what fits is taken again", answered("after all that", sandbox.put("x", bytes(MIB)), 200))
    grown = rss_mib(site.front()) - before
    check("F14 the front has not grown", [f"{grown:.0f} MiB"] if grown > 24 else [])
    check("F14 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
