"""The programs that are measured and those that measure: built or described here."""
import json
import os
import pathlib
import resource
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
SOURCES = ROOT / "tests/perf"
OUTPUT = ROOT / "build/bench"
INSIDE = OUTPUT / "bin"  # shown inside sandboxes
BENCH = OUTPUT / "bench"
SANDGLASS = ROOT / "build/bin/sandglass"
LIBRARY = ROOT / "build/lib/libsandglass.a"
TESTABLE = [ROOT / f"build/dev/lib/libtestable_{name}.a" for name in ("guard", "warden", "lib")]

PYTHON = "/usr/bin/python3"
CODE = "print(1+1)"
BWRAP = ["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc",
         "/proc", "--die-with-parent"]
# Kernels with the same modules on every machine, unless a row says which.
os.environ["SANDGLASS_WARM_KERNELS"] = "standard"
# Disks are in memory, unless a row says where.
os.environ["SANDGLASS_WORLDS_DISK"] = "0"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
               "SANDGLASS_WARM_KERNELS": "standard", "SANDGLASS_WORLDS_DISK": "0"}

WARNINGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra"]


def check_host():
    if os.geteuid() != 0:
        raise RuntimeError("sandboxes need root: run sudo make bench")
    for path in (SANDGLASS, LIBRARY, BWRAP[0], PYTHON, "/usr/sbin/runc", "/usr/bin/musl-gcc", "/usr/sbin/nft",
                 "/usr/bin/microsocks"):
        if not os.path.exists(path):
            raise RuntimeError(f"{path} is missing: use make bench, which builds and installs it")
    # A thousand sandboxes in one process hold more than ten thousand descriptors.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def build():
    INSIDE.mkdir(parents=True, exist_ok=True)
    for name in ("true", "syscalls", "files"):
        subprocess.run(["musl-gcc", *WARNINGS, "-static", "-s", SOURCES / f"inside/{name}.c",
                        "-o", INSIDE / name], check=True)
    shutil.copy(SOURCES / "inside/files.py", INSIDE)
    subprocess.run(["gcc", *WARNINGS, f"-I{ROOT}/include", *(SOURCES / "engine").glob("*.c"),
                    LIBRARY, "-o", BENCH], check=True)


def link_inner(output, *sources, libraries=()):
    """A program that calls inner functions: these are in the library of the dev build alone."""
    subprocess.run(["gcc", *WARNINGS, f"-I{ROOT}/include", f"-I{ROOT}/src", f"-I{SOURCES}/engine",
                    *(SOURCES / source for source in sources), *TESTABLE, *libraries, "-o", output],
                   check=True)


def bench(*arguments, program=(BENCH,)):
    """Runs the C half, or another program, and returns its figures."""
    run = subprocess.run([*program, *map(str, arguments)], stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"'{program[-1].name} {arguments[0]}' ended with {run.returncode}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def runc_bundle(name, command):
    """A directory that `runc run` takes: the host's /usr read-only, no network, no limits."""
    bundle = OUTPUT / f"runc-{name}"
    rootfs = bundle / "rootfs"
    for directory in ("usr", "proc", "dev", "sys", "etc", "tmp"):
        (rootfs / directory).mkdir(parents=True, exist_ok=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        if not (rootfs / link).is_symlink():
            (rootfs / link).symlink_to(f"usr/{link}")
    config = bundle / "config.json"
    config.unlink(missing_ok=True)
    subprocess.run(["/usr/sbin/runc", "spec", "--bundle", bundle], check=True)
    spec = json.loads(config.read_text())
    spec["process"] |= {"terminal": False, "args": command}
    # Without control groups: hosts that mount both versions at once confuse it.
    spec["linux"].pop("resources", None)
    spec["linux"]["namespaces"] = [n for n in spec["linux"]["namespaces"] if n["type"] != "cgroup"]
    spec["mounts"] = [m for m in spec["mounts"] if m["type"] != "cgroup"]
    spec["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr",
                           "options": ["bind", "ro"]})
    config.write_text(json.dumps(spec))
    return ["/usr/sbin/runc", "run", "--bundle", str(bundle), f"sandglass-bench-{name}"]


def check_output(command, expected):
    """A contender that does not do its work must not be timed."""
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         env=ENVIRONMENT, check=False)
    if run.returncode != 0 or run.stdout != expected:
        raise RuntimeError(f"{' '.join(command)}: status {run.returncode}, printed "
                           f"{run.stdout!r}, {run.stderr.strip()!r}")
