"""What the outside must look like before, during and after."""
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import program

# Counters and the like, which change by themselves.
VOLATILE = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-(nr|state)|aio-nr|epoll\.max)|fs\.quota\.|"
    r"kernel\.(random\.|ns_last_pid|pty\.nr|sched_domain|perf_event_max_sample_rate)|"
    r"net\.netfilter\.nf_conntrack_count|vm\.stat_refresh)"
)
TROUBLE = re.compile(
    r"WARNING: |\bBUG\b|Oops|[Kk]ernel panic|general protection|soft lockup|"
    r"blocked for more than|rcu.*stall|unregister_netdevice|"
    r"Out of memory: Killed|global_oom"
)
HOST_STATE = f"{program.TOP}/tests/system/host_state.py"


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def sysctls():
    p = subprocess.run(
        ["/usr/sbin/sysctl", "-a"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return {line for line in p.stdout.splitlines() if line and not VOLATILE.match(line)}


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True).stdout.splitlines()


def since(lines, last):
    """The lines of the log after `last`, also if older ones have been dropped meanwhile."""
    return lines[lines.index(last) + 1 :] if last in lines else lines


class Canary:
    """A secret file of the host's root, and a tree whose every byte is known."""

    def __init__(self):
        self.name, self.secret = os.urandom(8).hex(), os.urandom(16).hex()
        self.path = f"/root/CANARY-{self.name}"
        self.tree = tempfile.mkdtemp(prefix="sandglass-canary-", dir="/var/tmp")
        with open(self.path, "w") as f:
            f.write(self.secret)
        for i in range(50):
            os.makedirs(f"{self.tree}/{i % 5}/{i % 7}", exist_ok=True)
            with open(f"{self.tree}/{i % 5}/{i % 7}/{i}", "w") as f:
                f.write(f"{self.secret} {i}")
        self.digest = self.hash()

    def hash(self):
        total = hashlib.sha256()
        for top, dirs, files in os.walk(self.tree):
            dirs.sort()
            for name in sorted(files):
                path = os.path.join(top, name)
                st = os.lstat(path)
                total.update(
                    f"{path} {st.st_mode} {st.st_uid} {st.st_mtime_ns} {sha256(path)}".encode()
                )
        return total.hexdigest()

    def wrong(self):
        with open(self.path) as f:
            if f.read() != self.secret:
                return ["the canary file has changed"]
        return [] if self.hash() == self.digest else ["the canary tree has changed"]

    def remove(self):
        os.unlink(self.path)
        subprocess.run(["rm", "-rf", self.tree], check=True)


class Host:
    """The machine itself: parameters, log, programs, what sandboxes leave behind."""

    def __init__(self):
        self.sysctls, self.log = sysctls(), (kernel_log() or [""])[-1]
        self.files = {
            path: sha256(path)
            for path in ("/usr/bin/python3", "/usr/bin/env", "/etc/passwd", program.SANDGLASS)
        }
        fd, self.state = tempfile.mkstemp(prefix="sandglass-state-")
        os.close(fd)
        self.leaks("save")

    def leaks(self, verb="check"):
        """Processes, namespaces, mounts, control groups and slots without an owner."""
        p = subprocess.run(
            [sys.executable, HOST_STATE, verb, self.state, str(os.getpid())],
            capture_output=True,
            text=True,
        )
        if p.returncode == 0:
            return []
        return [f"left behind: {line}" for line in (p.stdout + p.stderr).splitlines()]

    def kernel_trouble(self):
        new = since(kernel_log(), self.log)
        return [f"kernel: {line}" for line in new if TROUBLE.search(line)]

    def changed(self):
        wrong = [f"sysctl: {line}" for line in sorted(self.sysctls ^ sysctls())]
        for path, digest in self.files.items():
            if sha256(path) != digest:
                wrong.append(f"{path} has changed")
        return wrong

    def remove(self):
        os.unlink(self.state)


class Neighbour:
    """Somebody else's sandboxes, one after the other. They must go on working; how long they take
    is told but not judged, because a busy machine is slow for honest reasons."""

    GROSS_S = 30

    def __init__(self):
        self.times, self.wrong, self.lock = [], [], threading.Lock()
        self.thread, self.stop = None, threading.Event()

    def once(self):
        r = program.run("--", "true", timeout=self.GROSS_S)
        self.times.append(r.seconds)
        if r.status != 0:
            self.wrong.append(f"a neighbour's run failed: {r}")

    def baseline(self, n=10):
        for _ in range(n):
            self.once()
        text = self.summary()
        self.times = []
        return text

    def loop(self):
        while not self.stop.is_set():
            with self.lock:
                self.once()
            self.stop.wait(0.05)

    def begin(self):
        self.stop.clear()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def end(self):
        """(what went wrong, how long it took)"""
        self.stop.set()
        self.thread.join()
        wrong, text = self.wrong, self.summary()
        self.times, self.wrong = [], []
        return wrong, text

    def summary(self):
        t = sorted(self.times)
        if not t:
            return "no run"
        return (
            f"{len(t)} runs, p50 {t[len(t) // 2] * 1000:.0f} ms, "
            f"p99 {t[min(len(t) - 1, len(t) * 99 // 100)] * 1000:.0f} ms, "
            f"worst {t[-1] * 1000:.0f} ms"
        )


class Stopwatch:
    def __init__(self):
        self.began = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.began
