"""G01: keys that are missing, wrong, cut, foreign or revoked, and how long the answer takes."""
import http.client
import os
import random
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from program import LONG, SANDGLASS  # noqa: E402
from server import Site, answered  # noqa: E402

SAMPLES = 10000 if LONG else 1500
T_MAX = 5.0  # of Student's t; chance alone gives that once in a million


def keys(site):
    good = site.key
    wrong_last = good[:-1] + ("0" if good[-1] != "0" else "1")
    cases = {
        "no key": {},
        "empty": {"X-API-Key": ""},
        "wrong at its end": {"X-API-Key": wrong_last},
        "cut": {"X-API-Key": good[:-1]},
        "longer": {"X-API-Key": good + "0"},
        "upper case": {"X-API-Key": good.upper()},
        "without its prefix": {"X-API-Key": good[4:]},
        "a pattern": {"X-API-Key": "e2b_%"},
        "SQL": {"X-API-Key": "' OR '1'='1"},
        "32 KiB": {"X-API-Key": "e2b_" + "a" * 30000},
        "in the wrong header": {"X-Key": good},
        "as a cookie": {"Cookie": f"X-API-Key={good}"},
        "basic": {"Authorization": f"Basic {good}"},
        "an access token": {"X-Access-Token": good},
    }
    wrong = []
    for what, headers in cases.items():
        for method, path in (("GET", "/v2/sandboxes"), ("POST", "/v2/sandboxes")):
            body = '{"templateID":"base"}' if method == "POST" else None
            a = site.ask(method, path, headers, body)
            wrong += answered(f"{what}: {method}", a, 401, 431)
    wrong += answered("in the query", site.ask("GET", f"/v2/sandboxes?api_key={good}"), 401)
    return wrong


def revoked(site):
    key = site.key_of("revoked")
    wrong = answered("a new key", site.api("GET", "/v2/sandboxes", key=key), 200)
    p = subprocess.run([SANDGLASS, "key", "revoke", "--state", site.state, key],
                       capture_output=True, text=True)
    if p.returncode != 0:
        wrong.append(p.stderr)
    return wrong + answered("a revoked key", site.api("GET", "/v2/sandboxes", key=key), 401)


def welch(a, b):
    spread = statistics.variance(a) / len(a) + statistics.variance(b) / len(b)
    return (statistics.mean(a) - statistics.mean(b)) / spread**0.5


def timing(site):
    """Wrong at the first character of the secret, or at the last: in random order, on one
    connection, without the slowest tenth, which is other programs' doing."""
    digit = "0" if site.key[4] != "0" else "1"
    kinds = [f"e2b_{digit}{site.key[5:]}", site.key[:-1] + ("0" if site.key[-1] != "0" else "1")]
    times = ([], [])
    c = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    for _ in range(SAMPLES * 2):
        i = random.randrange(2)
        began = time.perf_counter()
        c.request("GET", "/v2/sandboxes", headers={"X-API-Key": kinds[i]})
        c.getresponse().read()
        times[i].append(time.perf_counter() - began)
    c.close()
    kept = [sorted(t)[: len(t) * 9 // 10] for t in times]
    t = welch(*kept)
    note = ", ".join(f"{statistics.mean(k) * 1e6:.1f} us" for k in kept)
    return [f"t = {t:.1f}: {note}"] if abs(t) > T_MAX else [], f"t = {t:.1f}: {note}"


with Site() as site:
    check("G01 only a whole, living key opens", keys(site))
    check("G01 a revoked key is refused at once", revoked(site))
    wrong, note = timing(site)
    check("G01 the time does not tell how much of a key is right", wrong, note)
    with open(site.log, errors="replace") as f:
        check("G01 no key is in the log", re.findall(r"e2b_[0-9a-f]{8,}", f.read()))
    check("G01 the server goes on", site.trouble())
finish()
