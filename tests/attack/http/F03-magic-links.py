"""F03: links of /proc that lead to open files, other roots, and the agent itself."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish  # noqa: E402
from server import Site, answered  # noqa: E402

TARGETS = ("/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow", "/proc/self/fd/0",
           "/proc/self/fd/3", "/proc/self/fd/7", "/proc/1/fd/3", "/proc/1/cwd/etc/shadow",
           "/proc/self/exe", "/proc/1/exe", "/proc/1/environ", "/proc/self/environ",
           "/proc/self/mem", "/proc/1/mem", "/proc/1/maps", "/proc/self/maps",
           "/proc/self/mountinfo", "/proc/thread-self/environ", "/proc/self/task/1/environ",
           "/dev/stdin", "/dev/fd/3", "/proc/self/map_files")


def attempts(sandbox):
    wrong = []
    for i, target in enumerate(TARGETS):
        sandbox.says(f"ln -sfn {target} link{i}")
        for path in (target, f"link{i}"):
            for user in ("user", "root"):
                what = f"{path} -> {target} as {user}"
                wrong += answered(f"read {what}", sandbox.get(path, user), 4)
                wrong += answered(f"write {what}", sandbox.put(target, b"x", user), 4)
                a = sandbox.rpc("filesystem.Filesystem/ListDir", {"path": path})
                wrong += answered(f"list {what}", a, 4)
    return wrong


with Site() as site:
    sandbox = site.create()
    check("F03 magic links lead nowhere, and the agent's own files are closed", attempts(sandbox))
    check("F03 the sandbox goes on", sandbox.trouble() + site.trouble())
finish()
