"""C16: arguments and environments that are too long, too many or poisonous."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine, SandglassError  # noqa: E402
from host import check, finish  # noqa: E402
from program import run  # noqa: E402

POISON = [
    "LD_PRELOAD=/tmp/evil.so",
    "LD_AUDIT=/tmp/evil.so",
    "LD_LIBRARY_PATH=/tmp",
    "GCONV_PATH=/tmp",
    "BASH_ENV=/tmp/evil",
    "ENV=/tmp/evil",
    "PYTHONPATH=/tmp",
    "PATH=/tmp",
    "IFS=x",
    "LD_DEBUG=all",
    "GLIBC_TUNABLES=glibc.malloc.check=3",
    "MALLOC_TRACE=/tmp/t",
    "TZ=../../../etc/shadow",
]

wrong = []
for user in ("user", "root"):
    for text in POISON:
        r = run("--user", user, "--env", text, "--", "/usr/bin/true")
        if r.status != 0:
            wrong.append(f"{text}: {r}")
check("C16 poisonous variables touch the program only", wrong)

wrong = []
for name in ("=x", "A\nB=1", "", "=", "A B\x01=1", "\xff\xfe=1", "A" * 70000 + "=1"):
    r = run("--env", name, "--", "/usr/bin/true")
    if r.status not in (0, 2, 125) or (r.status != 0 and len(r.err.splitlines()) != 1):
        wrong.append(f"{name[:20]!r}: {r}")
with tempfile.NamedTemporaryFile("w") as f:
    f.writelines(f"V{i}={'x' * 20}\n" for i in range(100000))
    f.flush()
    r = run("--env-file", f.name, "--", "/usr/bin/true")
    if r.status not in (2, 125) or len(r.err.splitlines()) != 1:
        wrong.append(f"100,000 variables: {r}")
r = run("--", "/usr/bin/true", *["x" * 100000] * 15)
if r.status not in (0, 2, 125) or (r.status != 0 and len(r.err.splitlines()) != 1):
    wrong.append(f"1.5 MB of arguments: {r}")
check("C16 too long or strange ones get a clear answer", wrong)

wrong = []
with Engine() as engine:
    sandbox = engine.sandbox()
    for what, argv, env in (
        ("an argument of 1 MiB", ["/usr/bin/true", "x" * (1 << 20)], []),
        ("an argument of 32 MiB", ["/usr/bin/true", "x" * (32 << 20)], []),
        ("100,000 arguments", ["/usr/bin/true", *["x"] * 100000], []),
        ("100,000 variables", ["/usr/bin/true"], [f"V{i}=1" for i in range(100000)]),
        ("a variable without a name", ["/usr/bin/true"], ["=x"]),
        ("a variable without a value", ["/usr/bin/true"], ["novalue"]),
        ("a line feed in a name", ["/usr/bin/true"], ["A\nB=1"]),
        ("an empty command", [""], []),
        ("no command", [], []),
        ("bytes that are no text", [b"/usr/bin/true", b"\xff\xfe\x01"], [b"\xff=\xfe"]),
    ):
        for _ in range(3):
            try:
                told = f"status {sandbox.exec(*argv, env=env).status}"
            except SandglassError as e:
                told = str(e)
                if not told or "\n" in told:
                    wrong.append(f"{what}: {told!r}")
        print("#", what, told[:100])
        if sandbox.exec("/usr/bin/id", "-u", user="root").out != "0\n":
            wrong.append(f"after {what} the sandbox does not work any more")
            break
    sandbox.close()
check("C16 the agent survives all of them", wrong)
finish()
