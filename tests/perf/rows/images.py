"""Builds that start from an image of a registry on this machine, against skopeo, which only fetches it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

from . import programs
from .report import Times

sys.path.insert(0, str(programs.ROOT / "tests/system"))
import image_builds  # noqa: E402
import world_root  # noqa: E402
from pull import Real, free_port  # noqa: E402
from server_client import Server  # noqa: E402
from worlds import As, sandglass  # noqa: E402

ROUNDS = 5
SIZES = {"300 MB": 300_000_000, "1 GB": 1_000_000_000}  # unpacked
LAYERS = 4
SPARE_MS = 3000


def programs_of_host():
    """Files as images have them: libraries, programs, texts."""
    for top in ("/usr/lib", "/usr/bin", "/usr/share", "/usr/include"):
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                if not os.path.islink(path) and os.path.isfile(path):
                    yield path


def make_image(place, size):
    """A small Debian, and as much more as it takes. Returns how many bytes it has, packed."""
    world_root.make(f"{place}/root.tar")
    layers, files = [f"{place}/root.tar"], programs_of_host()
    each = (size - os.path.getsize(layers[0])) // LAYERS
    for i in range(LAYERS):
        layers.append(f"{place}/layer{i}.tar")
        with tarfile.open(layers[-1], "w") as tar:
            while os.path.getsize(layers[-1]) < each:
                path = next(files)
                tar.add(path, f"opt/copy/{i}{path}")
    return image_builds.save(place, "large", layers)


def fetch_alone(place, registry):
    shutil.rmtree(f"{place}/fetched", ignore_errors=True)
    start = time.monotonic()
    subprocess.run(["skopeo", "copy", "--quiet", "--insecure-policy", "--src-tls-verify=false", f"docker://{registry.host}/large:1",
                    f"dir:{place}/fetched"], check=True)
    return time.monotonic() - start


def timed(client, template):
    start = time.monotonic()
    sandbox = client.create(templateID=template)
    created = time.monotonic()
    if client.run(sandbox, "true")[0] != 0:
        raise RuntimeError("a sandbox of the image does not work")
    return sandbox, created - start


def build_and_use(client, server, registry):
    """From the request for a build to the end of a command in its first sandbox; then the second."""
    start = time.monotonic()
    told = image_builds.build(client, "large", f"{registry.host}/large:1", patience_s=300)
    if told["status"] != "ready":
        raise RuntimeError(told["reason"]["message"])
    one, first = timed(client, "large")
    whole = time.monotonic() - start
    two, second = timed(client, "large")
    for sandbox in (one, two):
        client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    client.api("DELETE", "/templates/large")
    sandglass(server, "world", "gc", "--all", "--state", server.state)
    image_builds.until(lambda: not os.listdir(f"{server.state}/worlds"), 30)
    return whole, first, second


def rounds(place, registry, size):
    server = Server(str(programs.SANDGLASS), f"{place}/state", "--build-registries", f"http://{registry.host}")
    image_builds.push(make_image(place, size), registry, "large:1")
    for path in pathlib.Path(place).glob("*.tar"):
        path.unlink()
    samples = []
    server.start()
    try:
        client = As(server)
        for i in range(-1, ROUNDS):  # the first is not counted
            alone = fetch_alone(place, registry)
            whole, first, second = build_and_use(client, server, registry)
            if i >= 0:
                samples.append({"skopeo": alone, "whole": whole, "first": first, "second": second})
    finally:
        server.stop()
    return samples


def measure(report, name, size):
    place = tempfile.mkdtemp(prefix="sandglass-bench.", dir="/var/tmp")
    registry = Real(place, free_port())
    try:
        samples = rounds(place, registry, size)
    finally:
        registry.end()
        shutil.rmtree(place)
    report.save(f"images-{name.replace(' ', '')}", samples)
    t = {case: Times([sample[case] * 1e6 for sample in samples]) for case in samples[0]}
    report.row(f"FROM an image of {name}: build to first sandbox", t["whole"].p50, 1.5 * t["skopeo"].p50 + SPARE_MS, "ms",
               f"{t['whole']} against {t['skopeo']} of skopeo")
    report.row(f"its template's first sandbox, {name}", t["first"].p50, 150, "ms", str(t["first"]))
    report.row(f"and the second, {name}", t["second"].p50, 50, "ms", str(t["second"]))


def images(report):
    for name, size in SIZES.items():
        measure(report, name, size)
