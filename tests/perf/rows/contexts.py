"""Contexts: the sandbox of a path, made, found again, raced for and reaped, over HTTP."""
import contextlib
import sqlite3
import subprocess
import tempfile
import time

from . import programs
from .report import by_case
from .server import Server, build, percentile, server_client

FOUND = 3000
NEW = 300
CELLS = 2000
CALLERS, RACES = 64, 1000
STORED, LIVE = 10000, 1000
REST_US = 30000  # between creations, for the pool and its kernels to fill up again
WARM_S = 2
# Limits that are not what is measured.
OPTIONS = ("--tenant-contexts", "2000", "--tenant-sandboxes", str(LIVE + 20), "--tenant-rate", "0",
           "--reap-every", "24h")
BAR_FOUND = {"SQLite": 0.3, "PostgreSQL": 0.8}


@contextlib.contextmanager
def postgres():
    """A PostgreSQL of our own, as safe as one in use: it waits for the disk."""
    script = programs.ROOT / "tests/postgres"
    with tempfile.TemporaryDirectory(prefix="sandglass-pg-") as directory:
        run = subprocess.run([script, "start", directory], check=True, capture_output=True,
                             text=True)
        try:
            subprocess.run([script, "psql", directory, "-c", "ALTER SYSTEM SET fsync = on", "-c",
                            "ALTER SYSTEM SET full_page_writes = on", "-c",
                            "SELECT pg_reload_conf()"], check=True, capture_output=True)
            yield run.stdout.strip()
        finally:
            subprocess.run([script, "stop", directory], check=True, capture_output=True)


def contexts(report):
    build()
    with Server(*OPTIONS) as s:
        store(report, s, "SQLite")
        race(report, s)
    with postgres() as where, Server("--store", where, *OPTIONS) as s:
        store(report, s, "PostgreSQL")
    with Server(*OPTIONS) as s:
        many(report, s)


def store(report, s, name):
    s.load("twins")
    time.sleep(WARM_S)
    samples = s.load("paths-new", "new", NEW, 3600, REST_US, "end")
    report.save(f"contexts-new-{name}", samples)
    percentile(report, f"get-or-create, new context, {name}", by_case(samples)["new"], 50,
               3 if name == "SQLite" else None)

    s.load("paths-new", "live", 1, 3600, REST_US, "keep")
    samples = s.load("paths-found", "live", 1, FOUND)
    report.save(f"contexts-found-{name}", samples)
    percentile(report, f"get-or-create, existing context, {name}", by_case(samples)["found"], 50,
               BAR_FOUND[name])

    samples = s.load("paths-run", "live-0", CELLS)
    report.save(f"contexts-run-{name}", samples)
    percentile(report, f"run_code('1+1') on a live path, {name}", by_case(samples)["run_code"], 50,
               1 if name == "SQLite" else None)


def race(report, s):
    samples = s.load("paths-race", CALLERS, RACES)
    report.save("contexts-race", samples)
    report.row(f"{CALLERS} callers, one cold path, {RACES} rounds: rounds with another number of "
               "sandboxes than one", samples[-1]["wrong"], 0)
    report.time("the same: until all have their answer", by_case(samples)["race"])


def fill(s, n):
    """Copies of a context that has ended, put into the file: to make and end as many takes minutes."""
    s.load("paths-new", "past", 1, 3600, 1, "end")
    with contextlib.closing(sqlite3.connect(f"{s.state}/front/server.db", timeout=10)) as db, db:
        db.row_factory = sqlite3.Row
        row = dict(db.execute("SELECT * FROM context WHERE conversation = 'past-0'").fetchone())
        row.pop("seq", None)
        names = list(row)
        text = f"INSERT INTO context ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        for i in range(1, n):
            row |= {"id": f"{i:020}", "conversation": f"past-{i}"}
            db.execute(text, [row[name] for name in names])


def many(report, s):
    """As many in the store as a busy month leaves, a thousand of them alive."""
    fill(s, STORED - LIVE)
    s.load("paths-new", "alive", LIVE, 3600, 1, "keep")
    samples = s.load("paths-found", "alive", LIVE, 2 * LIVE)
    report.save("contexts-many", samples)
    percentile(report, f"existing context, {STORED} in the store, {LIVE} alive",
               by_case(samples)["found"], 50, BAR_FOUND["SQLite"])

    client = server_client.Client(s)
    for i in range(LIVE):  # they expire together
        client.api("PUT", "/v1/contexts", {"conversationId": f"alive-{i}", "pathId": "main",
                                           "ttlSeconds": 10})
    time.sleep(11)
    samples = s.load("paths-reap")
    report.save("contexts-reap", samples)
    reaped = samples[-1]
    report.row(f"reaping {reaped['ended']} expired contexts", reaped["us"] / 1e6, 5, "s")
    percentile(report, "run_code of another path meanwhile", by_case(samples)["served"], 99, 20)
