"""E2B's SDK as it was over the years: what the server takes for each version of it."""
import json
import pathlib
import re
import socket
import subprocess
import tempfile

from . import programs
from .report import by_case
from .server import Server

ROUNDS = 150
WARM = 10  # rounds, for connections and compilers
MODULES = programs.ROOT / "build/programs"
NODE = programs.ROOT / "build/node/node_modules/node-22/bin/node"
NAMES = programs.ROOT / "tests/programs/names.cjs"


def certificate(folder):
    """One for *.box.test that signs itself."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=box.test",
                    "-addext", "subjectAltName=DNS:box.test,DNS:*.box.test", "-keyout", folder / "tls.key", "-out", folder / "tls.pem"],
                   check=True, capture_output=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(s, folder, domain, versions):
    run = subprocess.run([NODE, "--require", NAMES, programs.SOURCES / "server/versions.mjs", MODULES, str(ROUNDS), *versions],
                         check=True, capture_output=True, text=True,
                         env=programs.ENVIRONMENT | {"E2B_API_KEY": s.key, "E2B_DOMAIN": domain, "NODE_EXTRA_CA_CERTS": str(folder / "tls.pem")})
    samples = [json.loads(line) for line in run.stdout.splitlines()]
    return samples[WARM * len(versions):]


def versions(report):
    subprocess.run([programs.ROOT / "tools/npm-modules", "node", "programs"], check=True, stdout=subprocess.DEVNULL)
    found = re.findall(r'"e2b-([\d.]+)": "npm:', (programs.ROOT / "tests/programs/package.json").read_text(encoding="ascii"))
    found.sort(key=lambda v: [int(n) for n in v.split(".")])
    with tempfile.TemporaryDirectory(prefix="sandglass-bench-") as name:
        folder, port = pathlib.Path(name), free_port()
        certificate(folder)
        domain = f"box.test:{port}"
        s = Server("--domain", domain, "--tls-cert", folder / "tls.pem", "--tls-key", folder / "tls.key")
        s.port = port
        with s:
            samples = ask(s, folder, domain, found)
    report.save("versions", samples)
    times = by_case(samples)
    newest = times[found[-1]]
    for version in found:
        limit = None if version == found[-1] else 1.1
        report.row(f"the server's time of create to 'true', e2b {version}: {found[-1]} = 1", times[version].p50 / newest.p50, limit, "x", str(times[version]))
