"""Sanitising: how fast text goes through, and what cells of the code interpreter pay for it."""
import json
import pathlib
import random

from . import programs, server
from .report import Times, by_case

SANITISE = programs.OUTPUT / "sanitise"
ROUNDS = 9
TEXT_BYTES = 8_000_000
BAR_MB_S = 400
TURNS = 20
CELLS = {"1+1": 100, "lines": 25}  # in each turn
SAYS = {"1+1": "1+1", "lines": "100 KB printed"}
BAR_PERCENT = 5
ON, OFF = (("--sanitise", mode, "--sanitise-streams", mode) for mode in ("enforce", "off"))


def sanitise(report):
    server.build()
    programs.link_inner(SANITISE, "sanitise/main.c", libraries=("-lhs", "-lpcre2-8"))
    engine(report)
    run_code(report)


# ---- text: what programs print, always the same


def code():
    """Programs: what is in /usr/lib/python3, in order."""
    for path in sorted(pathlib.Path("/usr/lib/python3").rglob("*.py")):
        yield path.read_text(encoding="utf-8", errors="replace")


def log(dice):
    levels = ("DEBUG", "INFO", "INFO", "INFO", "WARNING", "ERROR")
    while True:
        yield (f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}T{dice.randint(0, 23):02}:"
               f"{dice.randint(0, 59):02}:{dice.randint(0, 59):02}.{dice.randint(0, 999999):06}Z "
               f"{dice.choice(levels)} worker-{dice.randint(0, 31)} GET /v1/items/{dice.randint(1, 10**6)} "
               f"{dice.choice((200, 200, 200, 404, 500))} in {dice.random() * 100:.2f} ms\n")
        if dice.random() < 0.01:
            yield f"user{dice.randint(1, 999)}@example.com signed in from 93.184.216.{dice.randint(1, 254)}\n"


def table(dice):
    while True:
        yield ",".join(f"{dice.gauss(0, 1000):.6f}" for _ in range(8)) + "\n"


def records(dice):
    while True:
        yield (f'{{"id": {dice.randint(1, 10**9)}, "uuid": "{dice.getrandbits(128):032x}", "name": '
               f'"item {dice.randint(1, 999)}", "price": {dice.random() * 100:.2f}, "tags": ["new", "sale"], '
               f'"stock": {dice.randint(0, 500)}}}\n')


def write_texts():
    """{name: path}; the last has all the others, a piece of each in turn."""
    sources = {"programs": code(), "log": log(random.Random(1)), "numbers": table(random.Random(2)),
               "JSON": records(random.Random(3))}
    texts = {}
    for name, pieces in sources.items():
        text = bytearray()
        for piece in pieces:
            text += piece.encode()
            if len(text) >= TEXT_BYTES:
                break
        texts[name] = bytes(text[:TEXT_BYTES])
    piece = 65536
    texts["all"] = b"".join(text[at:at + piece] for at in range(0, TEXT_BYTES, piece) for text in texts.values())
    paths = {}
    for name, text in texts.items():
        paths[name] = programs.OUTPUT / f"text-{name}"
        paths[name].write_bytes(text)
    return paths


# ---- the measures


def engine(report):
    paths = write_texts()
    samples = programs.bench(ROUNDS, *paths.values(), program=(SANITISE,))
    report.save("sanitise", samples)
    size = {s["case"]: s["bytes"] for s in samples if "bytes" in s}
    for what, key in (("in pieces of 16 KiB", "us"), ("whole texts", "whole_us")):
        times = by_case(samples, key)
        ms_a_gb = {name: times[str(path)].p50 * 1e9 / size[str(path)] for name, path in paths.items()}
        report.row(f"sanitising, {what}: ms a GB", ms_a_gb["all"], 1e6 / BAR_MB_S, "ms",
                   "MB/s: " + ", ".join(f"{name} {1e6 / ms:.0f}" for name, ms in ms_a_gb.items()))
    report.time("sanitising: compiling the patterns", by_case(samples)["compile"])


def check(s, sanitises):
    """A server that does not do its work must not be timed."""
    client = server.server_client.Client(s)
    code = "print('somebody', 'example.com', sep='@')"
    _, answer = client.api("POST", "/v1/tools/run_code", {"conversationId": "check", "pathId": "main",
                                                          "code": code})
    sandbox = client.create()
    headers = client.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
    _, lines = client.raw("POST", "/execute", json.dumps({"code": code}), headers)
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    for what, said in (("run_code", json.dumps(answer)), ("runCode", lines.decode())):
        if ("somebody@example.com" in said) == sanitises or ("[EMAIL]" in said) != sanitises:
            raise RuntimeError(f"{what} {'does not sanitise' if sanitises else 'sanitises'}: {said}")


def run_code(report):
    """Two servers at once, asked in turns: a path of a context, and a sandbox of E2B's API."""
    found = {}
    with server.Server(*ON) as on, server.Server(*OFF) as off:
        for s in (on, off):
            s.load("twins")
            check(s, s is on)
        for turn in range(TURNS):
            for s in (on, off)[::-1 if turn % 2 else 1]:
                for cell, n in CELLS.items():
                    for what, verb in (("run_code", ("paths-run", "bench", n, cell)),
                                       ("E2B's runCode", ("cells", n, cell))):
                        found.setdefault((what, cell, s is on), []).extend(
                            sample["us"] for sample in s.load(*verb))
    report.save("sanitise-cells", [{"case": f"{what}, {cell}, {'on' if is_on else 'off'}", "us": us}
                                   for (what, cell, is_on), values in found.items() for us in values])
    for what, cell, is_on in found:
        if is_on:
            ours, theirs = (Times(found[what, cell, which]) for which in (True, False))
            report.row(f"sanitised {what}, {SAYS[cell]}: more than without",
                       100 * (ours.p50 / theirs.p50 - 1), BAR_PERCENT, "%", f"{ours} against {theirs}")
