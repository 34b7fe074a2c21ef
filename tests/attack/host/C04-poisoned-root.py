"""C04: root inside replaces what programs trust. Only programs may be fooled, never the agent."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from engine import Engine, SandglassError  # noqa: E402
from host import check, finish  # noqa: E402

AGENT_UID = 65535
POISON = r'''
import os, shutil

LOG = "/tmp/log"
open(LOG, "w").close()
os.chmod(LOG, 0o666)
trap = """#!/usr/bin/python3 -S
import os
open('/tmp/log', 'a').write('RAN as %d\\n' % os.getuid())
"""
open("/etc/ld.so.preload", "w").write("/tmp/evil.so\n")
open("/tmp/evil.so", "w").write("not a library")
open("/etc/passwd", "w").write("root:x:4242:4242::/evil:/tmp/trap\n"
                               "user:x:0:0::/evil:/tmp/trap\nagent:x:65535:0::/:\n")
open("/etc/group", "w").write("user:x:0:\n")
open("/etc/nsswitch.conf", "w").write("passwd: evil\nhosts: evil\n")
for path in ("/bin", "/sbin"):
    os.unlink(path)
    os.mkdir(path)
for name in ("sh", "bash", "dash", "env", "sudo", "mount", "init", "su"):
    path = "/usr/local/bin/" + name
    os.path.lexists(path) and os.unlink(path)
    open(path, "w").write(trap)
    os.chmod(path, 0o6755)
shutil.rmtree("/home/user")
os.symlink("/proc/1", "/home/user")
shutil.rmtree("/run/sandglass", ignore_errors=True)
os.symlink("/", "/run/sandglass")
print("POISONED")
'''

with Engine() as engine:
    sandbox = engine.sandbox()
    r = sandbox.exec("/usr/bin/python3", "-c", POISON, user="root")
    check("C04 root can poison its sandbox", [] if "POISONED" in r.out else [r.out, r.err])
    wrong = []
    for user, uid in (("root", 0), ("user", 1000)):
        r = sandbox.exec(
            "/usr/bin/python3",
            "-c",
            "import os; print(os.getresuid(), os.getresgid())",
            user=user,
            cwd="/",
        )
        if f"({uid}, {uid}, {uid}) ({uid}, {uid}, {uid})" not in r.out:
            wrong.append(f"{user}: {r.out} {r.err} {r.message}")
    check("C04 users are who they were", wrong)
    wrong = []
    for path, user in (("/etc/x", "root"), ("/tmp/y", "user")):
        sandbox.write(path, b"data", user=user)
        if sandbox.read(path, user=user) != b"data":
            wrong.append(f"{path} was not written")
    for path in (
        "/home/user/environ",
        "/home/user/mem",
        "/run/sandglass/proc/1/environ",
        "/proc/1/environ",
    ):
        try:
            wrong.append(f"{path} was read: {sandbox.read(path, user='root')[:80]}")
        except SandglassError as e:
            print("#", e)
    check("C04 the agent keeps answering", wrong)
    for name in ("sh", "env", "bash"):
        sandbox.exec(name, user="root", cwd="/")
    log = sandbox.read("/tmp/log", user="root").decode()
    ran = set(log.split("\n")) - {""}
    check(
        "C04 traps run as who was asked for",
        [] if ran == {"RAN as 0"} else [f"{ran}"],
        f"{len(log.splitlines())} traps",
    )
    sandbox.close()
finish()
