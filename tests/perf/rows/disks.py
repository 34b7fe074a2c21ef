"""Files of sandboxes whose disks are on disk, in worlds: looked at, written, and what they cost in memory."""
import concurrent.futures
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time

from . import programs
from .footprint import meminfo
from .report import Times
from .server import Server

sys.path.insert(0, str(programs.ROOT / "tests/system"))
import world_root  # noqa: E402
from server_client import Client  # noqa: E402

LOOKED_AT = ["usr/lib/python3", "usr/lib/python3.11"]  # and the rest of /usr/lib
MANY = "opt/many"
ROUNDS, WRITES = 5, 7
SANDBOXES = int(os.environ.get("DISKS_SANDBOXES", "1000"))
TEMPLATES, WRITTEN_MB, CALLERS = 10, 20, 4
SETTLE_S = 5


def make_tar(path, *more):
    world_root.make(path)
    with tarfile.open(path, "a") as tar:
        for name in more:
            if os.path.exists(f"/{name}"):
                tar.add(f"/{name}", name)
        tar.add(programs.INSIDE / "many", MANY)


def imported(server, name, tar):
    subprocess.run([programs.SANDGLASS, "world", "import", "--state", server.state, "--name", name, tar], check=True,
                   stdout=subprocess.DEVNULL, env=programs.ENVIRONMENT)


def figures(text):
    return [float(word) for word in text.split()]


def inside(client, sandbox, *command):
    status, output = client.run(sandbox, " ".join(command))
    if status != 0:
        raise RuntimeError(f"'{' '.join(command)}' ended with {status}")
    return figures(output)


def outside(root, *command):
    run = subprocess.run(["chroot", "--userspec=1000:1000", root, *command], check=True, capture_output=True, text=True)
    return figures(run.stdout)


def files(report, server, client, folder):
    tar, bare = f"{folder}/many.tar", f"{folder}/bare"
    make_tar(tar, *LOOKED_AT)
    imported(server, "many", tar)
    os.makedirs(bare)
    subprocess.run(["tar", "-C", bare, "-xf", tar], check=True)
    sandbox = client.create(templateID="many", timeout=3600)
    ours, theirs, filtered = [], [], []
    for _ in range(ROUNDS):
        ours.append(inside(client, sandbox, f"/{MANY}", "look", "/usr/lib", "3"))
        theirs.append(outside(bare, f"/{MANY}", "look", "/usr/lib", "3"))
        filtered.append(outside(bare, f"/{MANY}", "filtered", "/usr/lib", "3"))
    if ours[0][3] != theirs[0][3]:
        raise RuntimeError(f"{ours[0][3]} files inside and {theirs[0][3]} outside")
    report.save("disks-files", [{"ours": ours, "theirs": theirs, "filtered": filtered}])
    for i, what in enumerate(("list", "stat", "open and read")):
        name = f"{what} {int(ours[0][3])} files of a world, processor time, bare ext4"
        times = Times([o[i] for o in ours])
        report.compare(f"{name} = 1", times, Times([t[i] for t in theirs]), 1.05)
        report.compare(f"{name} under a filter that allows all = 1", times, Times([f[i] for f in filtered]))


def scratch_store_of(server):
    """The scratch store's topmost directory, of which only the warden has a descriptor. Its places are s1, s2 and so on."""
    pid = server.process.pid
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        if os.path.isdir(path) and os.statvfs(path).f_files == 0 and any(re.fullmatch("s[0-9]+", d) for d in os.listdir(path)):
            return path
    raise RuntimeError("the server has no scratch store")


def writes(report, server, client):
    """In turns with a directory of the same file system."""
    sandbox = client.create(templateID="many", timeout=3600)
    top = scratch_store_of(server)
    os.makedirs(f"{top}/bare/tmp")
    ours, theirs = [], []
    for _ in range(WRITES):
        ours.append(inside(client, sandbox, f"/{MANY}", "write", "/tmp"))
        run = subprocess.run([programs.INSIDE / "many", "write", f"{top}/bare/tmp"], check=True, capture_output=True, text=True)
        theirs.append(figures(run.stdout))
    report.save("disks-writes", [{"ours": ours, "theirs": theirs}])
    for i, what in enumerate(("256 MiB", "20,000 small files")):
        report.compare(f"writing {what}, a bare directory of the same file system = 1", Times([o[i] for o in ours]),
                       Times([t[i] for t in theirs]), 1.25)


def memory(report, folder):
    tar = f"{folder}/small.tar"
    make_tar(tar)
    with Server("--worlds-disk", "32G", "--sandbox-disk", "256M", "--tenant-sandboxes", str(SANDBOXES + 10), "--tenant-rate", "0",
                "--pool-min", "0", "--pool-max", "0") as server:
        client = Client(server, 120)
        for i in range(TEMPLATES):
            imported(server, f"small{i}", tar)
            client.run(client.create(templateID=f"small{i}", timeout=3600), "true")
        time.sleep(SETTLE_S)
        os.sync()
        before = meminfo()["MemAvailable"]

        def work(i):
            sandbox = client.create(templateID=f"small{i % TEMPLATES}", timeout=3600)
            if client.run(sandbox, f"head -c {WRITTEN_MB}000000 /dev/urandom > ~/f")[0] != 0:
                raise RuntimeError(f"{WRITTEN_MB} MB could not be written")

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            list(callers.map(work, range(SANDBOXES - TEMPLATES)))
        os.sync()
        time.sleep(SETTLE_S)
        used = before - meminfo()["MemAvailable"]
        report.save("disks-memory", [{"sandboxes": SANDBOXES, "kib": used}])
        report.row(f"{SANDBOXES} sandboxes of {TEMPLATES} templates, {WRITTEN_MB} MB written each: memory of each",
                   used / 1024 / (SANDBOXES - TEMPLATES), 3, "MiB", "by MemAvailable")


def disks(report):
    subprocess.run(["musl-gcc", *programs.WARNINGS, "-static", "-s", programs.SOURCES / "inside/many.c", "-o",
                    programs.INSIDE / "many"], check=True)
    folder = tempfile.mkdtemp(prefix="sandglass-bench-tars-")
    try:
        with Server("--worlds-disk", "16G") as server:
            client = Client(server, 120)
            files(report, server, client, folder)
            writes(report, server, client)
        memory(report, folder)
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
