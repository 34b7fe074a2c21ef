"""Many sandboxes of many tenants, one after the other, with few descriptors to have."""
import shutil
import sys
import tempfile

from . import programs

sys.path.insert(0, str(programs.ROOT / "tests/system"))
import descriptors as tight  # noqa: E402

CYCLES, TENANTS, NOFILE = 10_000, 40, 4096


def descriptors(report):
    place = tempfile.mkdtemp(prefix="sandglass-bench.")
    server = tight.Tight(str(programs.SANDGLASS), place + "/state", NOFILE, "--tenant-rate", "0", "--tenant-idle", "20s")
    server.start()
    try:
        start = tight.measure(server)
        statuses, refusals, highest = tight.cycles(server, CYCLES, TENANTS)
        end = tight.back_to(server, start)
    finally:
        server.stop()
        shutil.rmtree(place)
    report.save("descriptors", [{"statuses": statuses, "start": start, "end": end, "highest": highest}])
    what = f"{CYCLES} cycles over {TENANTS} tenants, {NOFILE} descriptors"
    report.row(f"{what}: refused", CYCLES - statuses.get(201, 0), 0, detail=" ".join(refusals)[:200])
    report.row(f"{what}: open at most", highest, NOFILE)
    for key in start:
        report.row(f"{what}: growth of {key}", max(0, end[key] - start[key]), 0)
