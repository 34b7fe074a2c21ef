"""G03: ids and tokens that could be guessed, and guessing them."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import LONG  # noqa: E402
from server import Site  # noqa: E402

MADE = 2000 if LONG else 60
GUESSES = 300


def collect(site):
    made = []
    for _ in range(MADE):
        sandbox = site.create()
        made.append((sandbox.id, sandbox.token))
        sandbox.kill()
    return made


def judge(values, pattern, alphabet):
    wrong = [f"{v} is none" for v in values if not re.fullmatch(pattern, v)]
    if len(set(values)) != len(values):
        wrong.append("one came twice")
    if len({v[:5] for v in values}) < len(values) * 0.95:
        wrong.append("many begin alike")
    for i in range(len(values[0])):
        most = collections.Counter(v[i] for v in values).most_common(1)[0]
        if most[1] > len(values) * (6 / alphabet) + 6:
            wrong.append(f"character {i} is often {most}")
    distances = {int(b, 36) - int(a, 36) for a, b in zip(values, values[1:])}
    if len(distances) < len(values) * 0.9:
        wrong.append("they count up")
    return wrong


def guess(site, known):
    """Neighbours of a living id are as unknown as anything else."""
    answers = set()
    for i in range(GUESSES):
        c = "0123456789abcdefghijklmnopqrstuvwxyz"[i % 36]
        k = 1 + i % 18
        name = known[:k] + c + known[k + 1:]
        if name == known:
            continue
        a = site.ask("GET", "/health", {"E2b-Sandbox-Id": name})
        # Each has the number of its own request.
        body = a.body.replace(name.encode(), b"").replace(a.header("X-Request-Id")[0].encode(), b"")
        answers.add((a.status, body))
    return [] if len(answers) == 1 and next(iter(answers))[0] == 502 else [str(answers)]


with Site() as site:
    made = collect(site)
    check("G03 ids have 100 random bits", judge([i for i, _ in made], "[a-z0-9]{20}", 36))
    check("G03 tokens have 160 random bits", judge([t for _, t in made], "[0-9a-f]{40}", 16))
    check("G03 a token is not made of its id", [i for i, t in made if t.startswith(i[:8])])
    check("G03 guesses find nothing, and all look the same", guess(site, site.create().id))
    check("G03 the server goes on", site.trouble())
finish()
