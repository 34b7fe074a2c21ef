"""Cases of serve_warden.sh: what the warden process of a server does for its front, seen from the
front's side and from inside the sandboxes. `list` names them; a name runs one."""
import errno
import glob
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from serve_lib import *

CASES = {}


def case(title):
    def add(function):
        CASES[function.__name__] = (title, function)
        return function
    return add


def soon(ms):
    return now_ns() + ms * 1000000


def host_processes(word):
    """Host pids of processes of sandboxes that have this argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            argv = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if word.encode() in argv[1:]:
            found.append(int(pid))
    return found


def state_of(pid):
    return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]


# ---- life ------------------------------------------------------------------------------------------------


@case("a front is greeted with listeners and settings")
def greeting():
    with Server("--sandbox-pids", "77") as s:
        o = s.ready()
        kinds = [t.tell for t in o.tells]
        assert kinds == [LISTENER, SETTINGS, GUARD, EXPORTER, JOURNAL], kinds
        listener = socket.socket(fileno=o.tells[0].fds[0])
        assert listener.getsockname()[0] == "127.0.0.1" and listener.getsockname()[1] > 0
        text = os.read(o.tells[1].fds[0], 65536).decode()
        assert "sandbox_pids = 77\n" in text and f"state = {s.state}\n" in text, text


@case("listeners for metrics are told apart")
def metrics_listener():
    with Server("--metrics-listen", "127.0.0.1:0,127.0.0.2:0") as s:
        o = s.ready()
        told = [t for t in o.tells if t.tell == LISTENER]
        assert [t.flags for t in told] == [0, METRICS_HERE, METRICS_HERE], told
        names = [socket.socket(fileno=t.fds[0]).getsockname()[0] for t in told]
        assert names == ["127.0.0.1", "127.0.0.1", "127.0.0.2"], names
        assert "metrics_listen: everybody" not in s.said()
    with Server("--metrics-listen", "0.0.0.0:0") as s:
        s.ready()
        assert "metrics_listen: everybody who reaches 0.0.0.0:0" in s.said(), s.said()


@case("what the warden counts")
def figures():
    with Server() as s:
        o = s.ready()
        before = o.figures()
        assert before[5:12] == (0,) * 7 and not any(before.faults.values()), before
        assert before.cpu > 0 and before.resident > 100000 and before.descriptors > 5, before
        assert abs(before.began / 1000 - time.time()) < 60, before
        first, _ = o.create()
        o.create(memory=333 << 20)
        wait_for(lambda: o.figures().pool > 0, "a pool")
        assert o.figures()[7:13] == (2, 0, 0, 2, 0, 0), o.figures()
        last = o.answer(o.ask_create(new_id()))
        assert last.pooled == 1 and o.figures().pooled == 1, (last, o.figures())
        o.order(PAUSE, first)
        assert o.figures()[7:10] == (2, 1, 0), o.figures()
        o.order(KILL, first)
        assert o.figures()[7:13] == (2, 0, 0, 3, 1, 1), o.figures()


@case("volumes: made, mounted, in use, removed")
def volumes():
    with Server() as s:
        o = s.ready()
        tenant, id_ = "t" * 20, new_id()
        one = [(id_, 0, "/mnt/v")]

        def order(op, volumes=one, tenant=tenant):
            return o.order(op, tenant=tenant, volumes=volumes)

        for op in (VOLUME_REMOVE, VOLUME_OPEN):
            assert o.refused(op, tenant=tenant, volumes=one) == errno.ENOENT
        order(VOLUME_MAKE)
        assert o.refused(VOLUME_MAKE, tenant=tenant, volumes=one) == errno.EEXIST
        for wrong in ([], [("../x", 0, "")], [("", 0, "")], one + one):
            assert o.refused(VOLUME_MAKE, tenant=tenant, volumes=wrong) == errno.EINVAL, wrong
        assert o.refused(VOLUME_OPEN, tenant="u" * 20, volumes=one) == errno.ENOENT
        assert o.refused(VOLUME_OPEN, tenant="../..", volumes=one) == errno.EINVAL
        top = f"{s.state}/volumes/{tenant}/{id_}"
        assert os.stat(top).st_mode & 0o7777 == 0o777 and os.stat(f"{s.state}/volumes").st_mode & 0o77 == 0

        for target, why in (("relative", errno.EINVAL), ("", errno.EINVAL), ("/var/run/v", errno.EINVAL), ("/proc/v", errno.EINVAL)):
            try:
                o.answer(o.ask_create(new_id(), volumes=[(id_, 0, target)]))
                raise AssertionError(f"mounted at {target}")
            except Refused as e:
                assert e.errno == why, (target, e)
        assert o.refused(CREATE, new_id(), tenant, volumes=[(new_id(), 0, "/mnt/v")], fd=memfd(b"{}")) == errno.ENOENT
        first, channel = o.create(volumes=one)
        assert channel.out("echo inside > /mnt/v/f; id -u", user="user") == "1000"
        assert o.refused(VOLUME_REMOVE, tenant=tenant, volumes=one) == errno.EBUSY
        second, channel = o.create(volumes=[(id_, 1, "/srv/v")])
        assert channel.out("cat /srv/v/f; touch /srv/v/g || true").startswith("inside\ntouch: ")
        assert os.stat(f"{top}/f").st_uid == 1000
        for sandbox in (first, second):
            o.order(KILL, sandbox)
        sock = socket.socket(fileno=order(VOLUME_OPEN).fds[0])
        sock.sendall(b"nonsense" * 5)
        assert sock.recv(1) == b"", "a request that is none is not answered"
        order(VOLUME_REMOVE)
        wait_for(lambda: os.listdir(f"{s.state}/volumes") == [tenant], "its files are gone")


@case("how long the steps of a creation took")
def steps():
    with Server() as s:
        o = s.ready()
        began = now_ns()
        id_ = new_id()
        a = o.answer(o.ask_create(id_))
        took = (now_ns() - began) / 1000
        assert a.pooled == 0 and 0 < a.take <= took and a.files == a.kernels == 0, a
        layer = new_id()
        o.order(SNAPSHOT, id_, layer=layer)
        began = now_ns()
        b = o.answer(o.ask_create(new_id(), layer=layer))
        took = (now_ns() - began) / 1000
        assert 0 < b.files and b.take + b.files + b.network + b.kernels <= took, (b, took)


@case("the front is an ordinary user with no rights and an empty environment")
def front_rights():
    with Server(env={"SECRET_OF_THE_CALLER": "x", "PATH": "/bin"}) as s:
        s.ready()
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{s.front_pid}/status"))
        assert status["Uid"].split()[0] not in ("0",), status["Uid"]
        assert len(set(status["Uid"].split())) == 1 and status["Groups"].strip() == ""
        for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[caps], 16) == 0, (caps, status[caps])
        assert status["NoNewPrivs"].strip() == "1"
        assert open(f"/proc/{s.front_pid}/environ", "rb").read() == b""
        assert os.readlink(f"/proc/{s.front_pid}/cwd") == s.state + "/front"
        assert os.stat(s.state + "/front").st_mode & 0o7777 == 0o700
        assert os.stat(s.state + "/layers").st_uid == 0
        assert os.stat(s.state + "/layers").st_mode & 0o7777 == 0o700
        assert os.stat(s.state).st_mode & 0o7777 == 0o711


@case("create, run, kill")
def life():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        assert c.out("echo $((6 * 7))") == "42"
        c.start("/bin/sleep", "31415", flags=PROC_DETACH)
        wait_for(lambda: host_processes("31415"), "a process")
        assert o.refused(CREATE, id_, "t" * 20, fd=os.memfd_create("n")) == errno.EEXIST
        o.order(KILL, id_)
        assert o.tell(ENDED, id_).end == END_KILLED
        assert not host_processes("31415"), "it still runs when it is said to be gone"
        assert o.refused(KILL, id_) == errno.ENOENT


@case("two kills of one sandbox are both answered")
def two_kills():
    with Server() as s:
        o = s.ready()
        id_, _ = o.create()
        first, second = o.send(KILL, id_), o.send(KILL, id_)
        o.answer(first)
        try:
            o.answer(second)
        except Refused as e:
            assert e.errno == errno.ENOENT


@case("a sandbox whose pid 1 dies is told")
def died():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.start("/bin/sleep", "27182", flags=PROC_DETACH)
        pid = wait_for(lambda: host_processes("27182"), "a process")[0]
        agent = int(dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))["PPid"])
        os.kill(agent, signal.SIGKILL)
        assert o.tell(ENDED, id_).end == END_DIED
        assert o.refused(STATS, id_) == errno.ENOENT


@case("at its deadline a sandbox ends, and not before")
def deadline():
    with Server() as s:
        o = s.ready()
        id_, _ = o.create(deadline=soon(700))
        begin = now_ns()
        assert o.tell(ENDED, id_).end == END_EXPIRED
        assert 600e6 < now_ns() - begin < 5e9


@case("a deadline can be moved, and one that has passed ends it")
def deadline_moved():
    with Server() as s:
        o = s.ready()
        id_, c = o.create(deadline=soon(500))
        o.order(DEADLINE, id_, deadline=soon(600000))
        time.sleep(0.7)
        assert c.out("echo alive") == "alive"
        o.order(DEADLINE, id_, deadline=now_ns() - 1)
        assert o.tell(ENDED, id_).end == END_EXPIRED


# ---- pause -----------------------------------------------------------------------------------------------


# Counts, and notes the longest time between two steps.
COUNT = """
import os, time
n, longest, last = 0, 0, time.monotonic()
while True:
    n, now = n + 1, time.monotonic()
    longest, last = max(longest, now - last), now
    open("/tmp/n.new", "w").write(f"{n} {longest}")
    os.rename("/tmp/n.new", "/tmp/n")
    time.sleep(0.005)
"""


@case("pause stops every process, and resume lets it go on where it was")
def pause():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.started(c.start("/usr/bin/python3", "-c", COUNT, flags=PROC_DETACH))
        wait_for(lambda: c.run("cat /tmp/n")[0] == 0, "the process to count")
        o.order(PAUSE, id_)
        assert o.refused(PAUSE, id_) == errno.EALREADY
        time.sleep(0.5)
        a = o.order(RESUME, id_)
        assert a.state == FROZEN and not a.fds
        wait_for(lambda: float(c.out("cat /tmp/n").split()[1]) > 0.4, "the process to have stood still")
        first = c.out("cat /tmp/n").split()[0]
        wait_for(lambda: c.out("cat /tmp/n").split()[0] != first, "the process to go on")
        assert o.refused(RESUME, id_) == errno.EALREADY


@case("a paused sandbox does not run, and its deadline does not either")
def pause_deadline():
    with Server() as s:
        o = s.ready()
        id_, c = o.create(deadline=soon(1000))
        c.start("/bin/sleep", "14142", flags=PROC_DETACH)
        wait_for(lambda: host_processes("14142"), "a process")
        o.order(PAUSE, id_)
        time.sleep(1.2)
        assert not any(t.tell == ENDED for t in o.tells)
        o.order(RESUME, id_, deadline=soon(600000))
        assert c.out("echo alive") == "alive"


@case("at its deadline a sandbox is paused if that was asked for")
def deadline_pause():
    with Server() as s:
        o = s.ready()
        id_, c = o.create(deadline=soon(300), expiry=EXPIRY_PAUSE)
        assert o.tell(PAUSED, id_).state == FROZEN
        o.order(RESUME, id_)
        assert c.out("echo alive") == "alive"


@case("a paused sandbox can be killed")
def pause_kill():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.start("/bin/sleep", "17320", flags=PROC_DETACH)
        wait_for(lambda: host_processes("17320"), "a process")
        o.order(PAUSE, id_)
        o.order(KILL, id_)
        assert not host_processes("17320")


def snapshots(s):
    """Names of all snapshots, those included that are being written or removed."""
    return [os.path.basename(path) for path in glob.glob(s.state + "/layers/*/*")]


@case("without memory: files stay, processes go, and it boots again")
def files_only():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out("echo kept > /home/user/f; echo 1 > /tmp/t")
        c.start("/bin/sleep", "22360", flags=PROC_DETACH)
        wait_for(lambda: host_processes("22360"), "a process")
        boot = c.out("cat /proc/sys/kernel/random/boot_id")
        a = o.order(PAUSE, id_, flags=FILES_ONLY)
        assert a.state == STORED and not host_processes("22360")
        assert o.refused(PAUSE, id_, flags=FILES_ONLY) == errno.EALREADY
        for turn in range(3):
            a = o.order(RESUME, id_, deadline=soon(600000))
            assert a.state == STORED and len(a.fds) == 1
            c = Channel(a.fds[0])
            assert c.out("cat /home/user/f") == "kept" + str(turn or "")
            assert c.out("cat /proc/sys/kernel/random/boot_id") != boot
            c.out(f"echo kept{turn + 1} > /home/user/f")
            o.order(PAUSE, id_, flags=FILES_ONLY)
        assert len(snapshots(s)) <= 2, "old layers are not removed"
        o.order(KILL, id_)
        wait_for(lambda: not os.listdir(s.state + "/layers"), "an empty directory of layers")


@case("a deadline can store the files, and a paused one can boot anew from them")
def files_by_deadline():
    with Server() as s:
        o = s.ready()
        id_, c = o.create(deadline=soon(300), expiry=EXPIRY_FILES)
        c.out("echo one > /tmp/a")
        assert o.tell(PAUSED, id_).state == STORED
        c = Channel(o.order(RESUME, id_).fds[0])
        assert c.out("cat /tmp/a") == "one"
        c.out("echo two > /tmp/a")
        o.order(PAUSE, id_)
        a = o.order(RESUME, id_, flags=FILES_ONLY)
        assert a.state == FROZEN and len(a.fds) == 1
        assert Channel(a.fds[0]).out("cat /tmp/a") == "two"


# ---- snapshots -------------------------------------------------------------------------------------------

FILES = r"""
set -e
cd /home/user
mkdir -p d/e; echo text > d/e/f; chmod 4751 d/e/f; chown 1000:1000 d
ln d/e/f hard; ln -s d/e/f soft; ln -s /nowhere dangling; mkfifo fifo
echo 'with blank' > 'a b'; printf '\xff\xfe' > "$(printf 'n\xff')"
truncate -s 64M sparse; echo end >> sparse; echo begin | dd of=sparse conv=notrunc 2>/dev/null
touch -d '2001-02-03 04:05:06' old
rm /etc/hostname 2>/dev/null || rm /etc/hosts
rm -rf /etc/alternatives; mkdir /etc/alternatives; echo mine > /etc/alternatives/only
python3 -c 'import os; os.setxattr("d/e/f", "user.e2b.note", b"hello")'
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
"""
LOOK = r"""
cd /home/user
stat -c '%n %a %u %g %F' d d/e d/e/f soft fifo 'a b' old
cat d/e/f; readlink soft dangling
[ "$(stat -c %i d/e/f)" = "$(stat -c %i hard)" ] && echo linked
stat -c '%n %s' sparse; [ "$(stat -c %b sparse)" -lt 1000 ] && echo sparse
head -c 5 sparse; tail -c 4 sparse; stat -c %Y old; ls -b
ls /etc/alternatives; [ -e /etc/hosts -a -e /etc/hostname ] || echo removed
python3 -c 'import os; print(os.getxattr("d/e/f", "user.e2b.note"))'
[ -e sock ] && echo socket
true
"""


def without_suid(text):
    return text.replace(" 4751 ", " 751 ").replace("\nsock\n", "\n").replace("\nsocket", "")


@case("a sandbox made from a snapshot has its files, and lacks what was removed")
def snapshot():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out(FILES)
        before = c.out(LOOK)
        for word in ("linked", "sparse", "removed", "b'hello'", "only", "socket"):
            assert word in before, (word, before)
        layer = new_id()
        a = o.order(SNAPSHOT, id_, layer=layer, flags=DURABLE)
        assert 4096 < a.disk < 10e6, a.disk
        assert c.out("echo alive") == "alive", "the snapshot has ended the sandbox"
        c.out("echo later > /home/user/later")
        other, d = o.create(layer=layer)
        after = d.out(LOOK)
        assert after == without_suid(before), f"{before}\n-----\n{after}"
        assert d.out("id -u; ls /home/user/later 2>&1 || true").startswith("0\n")
        assert "later" not in d.out("ls /home/user")
        assert d.out("echo own > /home/user/own && cat /home/user/own", user="user") == "own"


@case("a snapshot of a sandbox made from one has the files of both")
def snapshot_chain():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out("cd /root; mkdir -p keep gone/x covered/y whole; echo 1 > keep/a; echo 1 > gone/x/a; "
              "echo 1 > covered/y/a; echo 1 > plain; echo 1 > whole/a; rm -rf /etc/alternatives")
        first, second, third = new_id(), new_id(), new_id()
        o.order(SNAPSHOT, id_, layer=first)
        _, d = o.create(layer=first)
        b_id, b = _, d
        b.out("cd /root; echo 2 > keep/b; rm -rf gone; rm -rf covered; mkdir covered; echo 2 > covered/z; "
              "rm plain; mkdir plain; echo 2 > plain/p; mkdir /etc/alternatives; chmod 700 keep")
        o.order(SNAPSHOT, b_id, layer=second)
        o.order(FORGET, layer=first)
        b2_id, b2 = o.create(layer=second)
        look = "cd /root; find . -printf '%P %m\n' | sort; ls -A /etc/alternatives | wc -l; cat keep/a keep/b"
        expected = b.out(look)
        assert b2.out(look) == expected, f"{expected}\n----\n{b2.out(look)}"
        assert "gone" not in expected and "covered/y" not in expected and "keep/a" in expected
        o.order(SNAPSHOT, b2_id, layer=third)
        _, b3 = o.create(layer=third)
        assert b3.out(look) == expected
        assert o.refused(CREATE, new_id(), "t" * 20, layer=first, fd=os.memfd_create("n")) == errno.ENOENT


@case("snapshots of paused and of stored sandboxes")
def snapshot_paused():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out("echo 1 > /root/f")
        a, b = new_id(), new_id()
        o.order(PAUSE, id_)
        o.order(SNAPSHOT, id_, layer=a)
        assert o.refused(PAUSE, id_) == errno.EALREADY
        o.order(RESUME, id_)
        assert c.out("echo 2 > /root/f; echo on") == "on"
        o.order(PAUSE, id_, flags=FILES_ONLY)
        o.order(SNAPSHOT, id_, layer=b)
        assert [o.create(layer=l)[1].out("cat /root/f") for l in (a, b)] == ["1", "2"]
        assert o.refused(SNAPSHOT, id_, layer=b) == errno.EEXIST


@case("durable snapshots are there after a restart, others are not")
def snapshot_restart():
    durable, other, forgotten = new_id(), new_id(), new_id()
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out("echo here > /root/f")
        o.order(SNAPSHOT, id_, layer=durable, flags=DURABLE)
        o.order(SNAPSHOT, id_, layer=other)
        o.order(SNAPSHOT, id_, layer=forgotten, flags=DURABLE)
        _, user = o.create(layer=forgotten)
        o.order(FORGET, layer=forgotten)
        assert user.out("cat /root/f") == "here", "what is in use must stay"
    with Server(state=s.top) as s2:
        o = s2.ready()
        _, c = o.create(layer=durable)
        assert c.out("cat /root/f") == "here"
        for layer in (other, forgotten):
            assert o.refused(CREATE, new_id(), "t" * 20, layer=layer,
                             fd=os.memfd_create("n")) == errno.ENOENT
        assert [n for n in snapshots(s2) if not n.startswith("old-")] == [durable]
        o.order(FORGET, layer=durable)
        assert o.refused(FORGET, layer=durable) == errno.ENOENT


@case("a snapshot that does not fit leaves nothing, and the sandbox goes on")
def snapshot_full():
    top = os.path.join(os.environ["T"], "small")
    os.makedirs(top)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "none", top], check=True)
    try:
        with Server(state=top) as s:
            o = s.ready()
            id_, c = o.create()
            c.out("head -c 30M /dev/urandom > /root/big")
            for flags in (0, DURABLE):
                assert o.refused(SNAPSHOT, id_, layer=new_id(), flags=flags) == errno.ENOSPC
            assert o.refused(PAUSE, id_, flags=FILES_ONLY) == errno.ENOSPC
            assert c.out("echo alive") == "alive"
            assert not os.listdir(s.state + "/layers")
            o.order(DEADLINE, id_, deadline=soon(1), expiry=EXPIRY_FILES)
            assert o.tell(PAUSED, id_).state == FROZEN, "its memory is kept when its files cannot be"
    finally:
        subprocess.run(["umount", top], check=True)


@case("hostile names, links and depths do not lead a snapshot astray")
def snapshot_hostile():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out(r"""cd /root; mkdir d; ln -s /etc d/etc; ln -s ../../../../.. up; mknod dev c 1 3 2>/dev/null
            mknod white c 0 0 2>/dev/null; mkdir new-links tree links; echo x > links/1
            python3 - <<'P'
import os
for i in range(300):
    os.link("links/1", f"links/{i + 2}")
os.mkdir("deep"); os.chdir("deep")
for i in range(1500):
    os.mkdir("n"); os.chdir("n")
P
            true""")
        layer = new_id()
        o.order(SNAPSHOT, id_, layer=layer)
        _, d = o.create(layer=layer)
        assert d.out("cd /root; readlink d/etc up; ls links | wc -l; stat -c %h links/1").split() == \
            ["/etc", "../../../../..", "301", "301"]
        c.out(r"""python3 - <<'P'
import os
os.chdir("/root/deep")
while os.path.isdir("n"): os.chdir("n")
for i in range(600):
    os.mkdir("n"); os.chdir("n")
P""")
        assert o.refused(SNAPSHOT, id_, layer=new_id()) == errno.EBUSY  # a tree that is too deep is in the way
        assert c.out("echo alive") == "alive"


@case("killing a sandbox whose files are being written")
def snapshot_kill():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.out("head -c 300M /dev/urandom > /root/big")
        save = o.send(SNAPSHOT, id_, layer=new_id(), flags=DURABLE)
        time.sleep(0.05)
        o.order(KILL, id_)
        try:
            o.answer(save)
        except Refused as e:
            assert e.errno == errno.ECANCELED
        wait_for(lambda: not [n for n in snapshots(s) if n.startswith(("new-", "old-"))],
                 "no leftovers")


# ---- survival --------------------------------------------------------------------------------------------


@case("a front that is killed: the next gets the sandboxes, and what runs goes on")
def front_killed():
    with Server() as s:
        o = s.ready()
        running, c = o.create(note=b"note of the running one", deadline=soon(900000))
        c.started(c.start("/bin/sleep", "24494", flags=PROC_DETACH))
        paused, _ = o.create(note=b"paused")
        stored, d = o.create(note=b"stored")
        d.out("echo kept > /root/f")
        o.order(NOTE, running, fd=note_fd(b"another note"))
        o.order(PAUSE, paused)
        o.order(PAUSE, stored, flags=FILES_ONLY)
        pids = host_processes("24494")
        s.kill_front()
        o = s.ready()
        told = {t.id: t for t in o.tells if t.tell == SANDBOX}
        assert set(told) == {running, paused, stored}
        assert [told[i].state for i in (running, paused, stored)] == [RUNNING, FROZEN, STORED]
        assert os.read(told[running].fds[0], 100) == b"another note"
        assert told[running].deadline > now_ns() and told[running].tenant == "t" * 20
        assert len(told[stored].fds) == 1
        assert Channel(told[running].fds[1]).out("echo again") == "again"
        assert host_processes("24494") == pids
        o.order(RESUME, paused)
        assert Channel(told[paused].fds[1]).out("echo thawed") == "thawed"
        assert Channel(o.order(RESUME, stored).fds[0]).out("cat /root/f") == "kept"


@case("a front that is killed while it waits: what it ordered is done, or undone")
def front_killed_midway():
    with Server() as s:
        o = s.ready()
        stored, frozen, snapped, ended = ids = [new_id() for _ in range(4)]
        for id_ in ids:
            o.create(id_)[1].out("head -c 40M /dev/urandom > /root/big")
        lost, layer = new_id(), new_id()
        o.send(PAUSE, stored, flags=FILES_ONLY)
        o.send(SNAPSHOT, snapped, layer=layer, flags=DURABLE)
        o.send(PAUSE, frozen)
        o.send(KILL, ended)
        o.ask_create(lost, disk=16 << 20)
        o.order(STATS, stored)  # they have all been taken
        s.kill_front()
        o = s.ready()
        told = {t.id: t.state for t in o.tells if t.tell == SANDBOX}
        assert {stored, frozen, snapped} <= set(told) and ended not in told, told
        for id_, state in ((stored, STORED), (frozen, FROZEN)):
            if told[id_] != state:
                assert o.tell(PAUSED, id_).state == state
        assert Channel(o.order(RESUME, stored).fds[0]).out("stat -c %s /root/big") == str(40 << 20)
        o.order(RESUME, frozen)
        o.order(SNAPSHOT, snapped, layer=new_id())  # waits for the first one
        wait_for(lambda: layer not in snapshots(s),
                 "a snapshot that nobody knows of to go")
        if lost not in told:
            assert o.create(lost)[1].out("echo free") == "free", "its id is free again"


def note_fd(text):
    fd = os.memfd_create("note")
    os.write(fd, text)
    return fd


@case("fronts that are killed again and again under load lose no sandbox")
def fronts_killed():
    with Server() as s:
        o = s.ready()
        kept = [o.create()[0] for _ in range(5)]
        for _ in range(15):
            for _ in range(10):
                o.ask_create(new_id())
            s.kill_front()
            o = s.ready()
        told = [t.id for t in o.tells if t.tell == SANDBOX]
        assert set(kept) <= set(told)
        for t in list(o.tells):
            if t.tell == SANDBOX:
                assert Channel(t.fds[1]).out("echo x") == "x"


def stop_and_wait(s, o, pid, process, patience=PATIENCE_S):
    """Stops a process, and waits until that was noticed: the seconds it took."""
    os.kill(pid, signal.SIGSTOP)
    begin = time.monotonic()
    wait_for(lambda: f"{process} (pid {pid}) has not answered for" in s.said(), "a word about it", patience)
    return time.monotonic() - begin


@case("a front that is stopped is killed and replaced, and what runs goes on")
def front_stopped():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        o.mute = True  # the test answers for the puppet
        took = stop_and_wait(s, o, s.front_pid, "front")
        assert took >= 4, f"after {took} s"
        o = s.ready()
        assert [t.id for t in o.tells if t.tell == SANDBOX] == [id_]
        assert "front 1 has ended unexpectedly: it was killed by SIGKILL" in s.said(), s.said()
        faults = o.figures().faults
        assert faults["front", "stopped"] == 1 and faults["front", "killed"] == 0, faults


@case("a front that answers no more is killed and replaced")
def front_silent():
    with Server() as s:
        o = s.ready()
        o.mute = True
        begin = time.monotonic()
        wait_for(lambda: "front (pid" in s.said() and "not answered for 15 s" in s.said(), "a word about it", 60)
        assert time.monotonic() - begin > 12
        assert s.ready().figures().faults["front", "silent"] == 1


@case("how a front ended is said and counted")
def front_ends():
    with Server() as s:
        o = s.ready()
        os.kill(s.front_pid, signal.SIGSEGV)
        o = s.ready()
        s.puppet.close()
        o = s.ready()
        assert "front 1 has ended unexpectedly: it was killed by SIGSEGV" in s.said(), s.said()
        assert "front 2 has ended unexpectedly: it exited with status 0" in s.said(), s.said()
        faults = o.figures().faults
        assert faults["front", "killed"] == 1 and faults["front", "exited"] == 1, faults


@case("a warden that was stopped itself holds that against nobody")
def warden_stopped():
    with Server() as s:
        o = s.ready()
        front = s.front_pid
        s.process.send_signal(signal.SIGSTOP)
        time.sleep(6.5)
        s.process.send_signal(signal.SIGCONT)
        assert o.create()[1].out("echo on") == "on"
        time.sleep(1.5)
        assert s.front_pid == front and "not answered" not in s.said(), s.said()


@case("the service manager is told when it is ready, that it lives, and that it ends")
def notify():
    with tempfile.TemporaryDirectory() as top, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.path.join(top, "notify"))
        manager.settimeout(PATIENCE_S)
        env = {**os.environ, "NOTIFY_SOCKET": os.path.join(top, "notify"), "WATCHDOG_USEC": "1000000"}
        with Server(env=env) as s:
            o = s.front()
            o.tell(READY)
            assert manager.recv(100) == b"WATCHDOG=1"
            o.send(NOW_READY)
            said = [manager.recv(100) for _ in range(3)]
            assert said.count(b"READY=1") == 1 and set(said) == {b"READY=1", b"WATCHDOG=1"}, said
            s.process.send_signal(signal.SIGTERM)
            while manager.recv(100) != b"STOPPING=1":
                pass


@case("a server whose front cannot start gives up, with the reason and status 78")
def front_broken():
    with Server("--front-program", "/bin/false") as s:
        assert s.process.wait(PATIENCE_S) == 78
        assert "the front cannot start: exited with status 1" in s.said(), s.said()
        assert "front: exited with status 1\n" in open(os.path.join(s.state, "trouble")).read()


@case("the reason is the front's own word for it")
def front_fails():
    with Server() as s:
        for _ in range(5):
            o = s.front()
            o.sock.send(o.packed(FAILED, message=b"the database is not there\n\x1b[2J"))
            s.puppet.close()
        assert s.process.wait(PATIENCE_S) == 78
        assert "the front cannot start: the database is not there  [2J" in s.said(), s.said()


@case("once a front was ready its sandboxes are kept, however many cannot start")
def front_fails_later():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        s.kill_front()
        for n in range(6):
            o = s.front()
            o.sock.send(o.packed(FAILED, message=b"the database is gone"))
            s.puppet.close()
            wait_for(lambda: s.said().count("has ended unexpectedly") >= n + 2, "its end")
        trouble = os.path.join(s.state, "trouble")
        assert open(trouble).read() == "front: the database is gone\n"
        wait_for(lambda: "front will be restarted in" in s.said(), "a word about the pause")
        o = s.ready()
        told, = [t for t in o.tells if t.tell == SANDBOX]
        assert told.id == id_ and Channel(told.fds[1]).out("echo alive") == "alive"
        wait_for(lambda: not os.path.exists(trouble), "an end of the trouble")


@case("the warden killed -9: its sandboxes end, and the next start finds a clean house")
def warden_killed():
    with Server() as s:
        o = s.ready()
        for i in range(12):
            id_, c = o.create()
            c.started(c.start("/bin/sleep", "26457", flags=PROC_DETACH))
            if i % 2:
                o.order(PAUSE, id_)
        s.end(signal.SIGKILL)
    begin = time.monotonic()
    with Server(state=s.top) as s2:
        o = s2.ready()
        assert time.monotonic() - begin < 5, "the next start took too long"
        assert not host_processes("26457"), "processes are left"
        assert not [t for t in o.tells if t.tell == SANDBOX]
        assert o.create()[1].out("echo new") == "new"


@case("two servers cannot share a state directory")
def two_servers():
    with Server() as s:
        s.ready()
        other = Server(state=s.top)
        assert other.process.wait(PATIENCE_S) != 0
        assert f"pid {s.process.pid}" in s.said(), s.said()
        other.log.close()


@case("SIGTERM drains: the front is told, and all ends with status 0")
def drain():
    with Server() as s:
        o = s.ready()
        _, c = o.create()
        c.started(c.start("/bin/sleep", "28284", flags=PROC_DETACH))
        s.process.send_signal(signal.SIGTERM)
        o.tell(DRAIN)
        assert c.out("echo alive") == "alive", "what is under way must be finished"
        s.puppet.close()
        assert s.process.wait(PATIENCE_S) == 0
        assert not host_processes("28284")


@case("a second signal does not wait for the front")
def drain_now():
    with Server() as s:
        o = s.ready()
        s.process.send_signal(signal.SIGINT)
        o.tell(DRAIN)
        begin = time.monotonic()
        s.process.send_signal(signal.SIGINT)
        assert s.process.wait(PATIENCE_S) == 0
        assert time.monotonic() - begin < 8


# ---- many ------------------------------------------------------------------------------------------------


@case("200 creates at once, and all of them work")
def burst():
    with Server() as s:
        o = s.ready()
        seqs = [o.ask_create(new_id()) for _ in range(200)]
        channels = [Channel(o.created(q)) for q in seqs]
        streams = [c.start("/bin/echo", "x") for c in channels]
        assert len(streams) == 200
        for c in channels[::20]:
            assert c.out("echo y") == "y"


@case("create, run and kill in a row use the pool and leave nothing")
def sustained():
    with Server() as s:
        o = s.ready()
        for i in range(150):
            id_, c = o.create()
            assert c.out("echo x") == "x"
            c.close()
            o.send(KILL, id_)
        wait_for(lambda: len([t for t in o.tells if t.tell == ENDED]) == 150 or
                 o.receive(0.1) and False, "all of them to end")


FORKS = """
import os, time
for i in range(80):
    try:
        if os.fork() == 0:
            time.sleep(0.5)
            os._exit(0)
    except OSError:
        break
"""


@case("limits: those of the order, and the server's where it names none")
def limits():
    with Server("--sandbox-memory", "64M", "--sandbox-disk", "32M", "--sandbox-pids", "50", "--worlds-disk", "0") as s:
        o = s.ready()
        id_, c = o.create()
        assert c.out("df -m --output=size / | tail -1") == "32"
        status, text = c.run("head -c 40M /dev/zero > /root/f")
        assert status != 0 and "No space left" in text, text
        assert o.order(STATS, id_).oom == 0, "a full disk must not end programs"
        status, text = c.run("python3 -c 'x = bytearray(150 << 20)'")
        assert status == 137 and o.order(STATS, id_).oom == 1, (status, text)
        c.out("python3 -c '" + FORKS + "'")
        assert o.order(STATS, id_).pids > 0
        id_, c = o.create(disk=8 << 20, memory=256 << 20)
        assert c.out("df -m --output=size / | tail -1") == "8"
        assert c.out("python3 -c 'x = bytearray(150 << 20); print(len(x) >> 20)'") == "150"
        assert o.order(STATS, id_).total == 256 << 20
        assert o.refused(CREATE, new_id(), "t" * 20, memory=1, fd=note_fd(b"")) == errno.EINVAL


@case("figures: processor time and memory of one sandbox")
def stats():
    with Server() as s:
        o = s.ready()
        busy, c = o.create()
        idle, _ = o.create()
        c.out("python3 -c 'import time\nwhile time.process_time() < 0.4: pass'")
        c.started(c.start("/usr/bin/python3", "-c", "x = b'a' * (80 << 20); import time; time.sleep(99)",
                          flags=PROC_DETACH))
        wait_for(lambda: o.order(STATS, busy).used > 80 << 20, "memory in use")
        a, b = o.order(STATS, busy), o.order(STATS, idle)
        assert 300000 < a.cpu < 5000000, a.cpu
        assert b.cpu < 300000 and b.used < 40 << 20, b
        assert a.total == 2 << 30
        c.out("head -c 20M /dev/zero > /root/f")
        assert o.order(STATS, busy).cache > 20 << 20


BURN = "python3 -c 'import time\nwhile time.process_time() < {}: pass'"


@case("what a sandbox has used is told at its end, also of a short life, and before it was booted again")
def usage():
    with Server() as s:
        o = s.ready()
        short, c = o.create()
        c.run(BURN.format(0.2))
        o.order(KILL, short)
        told = o.tell(ENDED, short)
        assert 200e3 <= told.cpu < 5e6 and told.used > 0, told
        id_, c = o.create()
        c.run(BURN.format(0.3))
        before = o.order(PAUSE, id_, flags=FILES_ONLY).cpu
        assert before >= 300e3, before
        c = Channel(o.order(RESUME, id_).fds[0])
        c.run(BURN.format(0.3))
        assert o.order(STATS, id_).cpu >= before + 300e3
        o.order(PAUSE, id_)
        s.kill_front()
        o = s.ready()
        told = o.tell(SANDBOX, id_)
        assert told.cpu >= before + 300e3, told
        o.order(KILL, id_)
        assert o.tell(ENDED, id_).cpu >= told.cpu


@case("tenants do not share a domain")
def tenants():
    with Server() as s:
        o = s.ready()
        _, a = o.create(tenant="a" * 20)
        _, b = o.create(tenant="b" * 20)
        for c, word in ((a, "33166"), (b, "36055")):
            c.started(c.start("/bin/sleep", word, flags=PROC_DETACH))
        pids = [wait_for(lambda: host_processes(w), "a process")[0] for w in ("33166", "36055")]
        spaces = [os.readlink(f"/proc/{p}/ns/user") for p in pids]
        uids = [os.stat(f"/proc/{p}").st_uid >> 16 for p in pids]
        assert len(set(spaces)) == 2 and abs(uids[0] - uids[1]) > 100


def children(server, name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status"))
        except OSError:
            continue
        if int(status["PPid"]) == server.process.pid and status["Name"].strip() == name:
            found.append(int(pid))
    return found


def only_child(server, name):
    """The pid of the one that there is, once the sandbox that the server made at its start, to try, has gone."""
    return wait_for(lambda: len(found := children(server, name)) == 1 and found, f"one {name}")[0]


@case("sandboxes wait ready, and go when their tenant has been away for long")
def pool():
    with Server("--pool-min", "3", "--tenant-idle", "1s", "--warm-kernels", "none") as s:
        o = s.ready()
        wait_for(lambda: not children(s, "sg-agent"), "none, since nobody has asked for one")
        id_, _ = o.create()
        wait_for(lambda: len(children(s, "sg-agent")) == 4, "a pool of three")
        time.sleep(2.5)
        assert len(children(s, "sg-agent")) == 4, "the tenant still has a sandbox"
        o.order(KILL, id_)
        wait_for(lambda: not children(s, "sg-agent") and not children(s, "sg-holder"),
                 "an end of the tenant's domain")
        assert o.create()[1].out("echo back") == "back"


@case("a spawner that is killed: what runs goes on, and the next sandbox gets another")
def spawner_killed():
    with Server() as s:
        o = s.ready()
        _, c = o.create()
        os.kill(only_child(s, "sg-spawner"), signal.SIGKILL)
        assert c.out("echo alive") == "alive"
        wait_for(lambda: "the spawner of a tenant has ended: it was killed by SIGKILL" in s.said(), "a word about it")
        assert o.create()[1].out("echo new") == "new"
        assert c.out("echo alive") == "alive"
        assert o.figures().faults["spawner", "killed"] == 1


@case("creates that wait for a spawner that is killed get their sandboxes from the next")
def spawner_killed_midway():
    with Server("--warm-kernels", "none") as s:
        o = s.ready()
        o.create()
        spawner = only_child(s, "sg-spawner")
        os.kill(spawner, signal.SIGSTOP)
        seqs = [o.ask_create(new_id(), memory=(300 + n) << 20) for n in range(8)]  # none from the pool
        o.figures()  # they have been read
        os.kill(spawner, signal.SIGKILL)
        for seq in seqs:
            assert Channel(o.created(seq)).out("echo new") == "new"


@case("helpers that are stopped: spawner and broker are replaced, the holder is continued")
def helpers_stopped():
    with Server() as s:
        o = s.ready()
        _, c = o.create()
        holder = only_child(s, "sg-holder")
        spawner = only_child(s, "sg-spawner")
        broker, = wait_for(lambda: children(s, "sg-broker"), "a broker")
        begin = time.monotonic()
        for pid in (holder, spawner, broker):
            os.kill(pid, signal.SIGSTOP)
        seq = o.ask_create(new_id(), memory=300 << 20)
        for process, pid in (("holder", holder), ("spawner", spawner), ("broker", broker)):
            wait_for(lambda: f"{process} (pid {pid}) has not answered for 5 s and is stopped" in s.said(),
                     f"a word about the {process}")
        assert time.monotonic() - begin >= 4
        assert Channel(o.created(seq)).out("echo new") == "new", "what waited is served by the next spawner"
        wait_for(lambda: state_of(holder) == "S", "a holder that goes on")
        wait_for(lambda: broker not in children(s, "sg-broker") and spawner not in children(s, "sg-spawner"), "their end")
        assert c.out("echo alive") == "alive"
        faults = o.figures().faults
        assert {p for p, f in faults if faults[p, f]} == {"holder", "spawner", "broker"}, faults
        assert all(faults[p, "stopped"] == 1 for p in ("holder", "spawner", "broker")), faults


@case("a holder that is killed is named, and the tenant gets another")
def holder_killed():
    with Server() as s:
        o = s.ready()
        id_, _ = o.create()
        os.kill(only_child(s, "sg-holder"), signal.SIGKILL)
        o.tell(ENDED, id_)
        wait_for(lambda: "the holder of a tenant was killed" in s.said(), "a word about it")
        assert o.create()[1].out("echo new") == "new"
        faults = o.figures().faults
        assert faults["holder", "killed"] == 1 and faults["spawner", "killed"] == 0, faults


@case("a log in JSON, a line each")
def log_json():
    with Server("--log", "json", "--log-level", "debug") as s:
        o = s.ready()
        id_, _ = o.create()
        o.order(KILL, id_)
    lines = [json.loads(line) for line in s.said().splitlines()]
    assert all(set(line) >= {"time", "level", "message"} for line in lines), lines
    assert {"created", "ended: killed"} <= {line["message"] for line in lines
                                            if line.get("sandbox") == id_}, lines


# ---- bad input --------------------------------------------------------------------------------------------


@case("orders with bad fields are refused, and the rest goes on")
def bad_fields():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        note = note_fd(b"x")
        assert o.refused(CREATE, "UPPER" * 4, "t" * 20, fd=note) == errno.EINVAL
        assert o.refused(CREATE, "../../etc", "t" * 20, fd=note) == errno.EINVAL
        assert o.refused(CREATE, new_id(), "../x", fd=note) == errno.EINVAL
        assert o.refused(CREATE, new_id(), "t" * 20) == errno.EMFILE
        assert o.refused(CREATE, new_id(), "t" * 20, layer="../../../etc/passwd0", fd=note) == errno.EINVAL
        assert o.refused(CREATE, new_id(), "t" * 20, layer=new_id(), fd=note) == errno.ENOENT
        assert o.refused(CREATE, new_id(), "t" * 20, disk=1 << 62, fd=note) == errno.EINVAL
        big = os.memfd_create("big")
        os.ftruncate(big, (1 << 20) + 1)
        assert o.refused(CREATE, new_id(), "t" * 20, fd=big) == errno.EFBIG
        assert o.refused(NOTE, id_) == errno.EMFILE
        assert o.refused(SNAPSHOT, id_, layer="x") == errno.EINVAL
        assert o.refused(FORGET, layer="") == errno.EINVAL
        for op in (DEADLINE, KILL, PAUSE, RESUME, STATS, SNAPSHOT):
            assert o.refused(op, new_id(), layer=new_id()) == errno.ENOENT
        assert c.out("echo alive") == "alive"


@case("garbage on the orders' socket ends that front and nothing else")
def garbage():
    with Server() as s:
        o = s.ready()
        kept, _ = o.create()
        good = o.packed(KILL, 1, 0, 0, 0, 0, 0, 0, 0, 0, kept.encode(), b"", b"")
        rng = random.Random(1)
        for data in (b"x", b"\0" * 128, good[:-1], good + b"x", os.urandom(128), b"y" * 4000,
                     good[:4] + b"\xff" * 4 + good[8:], good[:16] + b"\xff" * 8 + good[24:],
                     *(bytes(rng.randrange(256) for _ in range(128)) for _ in range(5))):
            o.order(STATS, kept)  # a front that did something is not one that cannot start
            socket.send_fds(o.sock, [data], [0, 1])
            o = s.ready()
        told = [t for t in o.tells if t.tell == SANDBOX]
        assert [t.id for t in told] == [kept]
        assert Channel(told[0].fds[1]).out("echo alive") == "alive"


@case("a sandbox that floods its channel or its line's end harms nobody")
def hostile_channel():
    with Server() as s:
        o = s.ready()
        id_, c = o.create()
        c.sock.sendall(os.urandom(65536))
        _, d = o.create()
        assert d.out("echo alive") == "alive"
        o.order(KILL, id_)


# ---- settings ---------------------------------------------------------------------------------------------


@case("SIGHUP reads the settings again; a bad file changes nothing")
def reload():
    with Server("--sandbox-pids", "60") as s:
        o = s.ready()
        o.tells.clear()
        with open(s.config(), "w") as f:
            f.write("sandbox_disk = 48M\nsandbox_pids = 70\ninsecure = yes\n")
        s.process.send_signal(signal.SIGHUP)
        text = os.read(o.tell(SETTINGS).fds[0], 65536).decode()
        assert f"sandbox_disk = {48 << 20}\n" in text and "sandbox_pids = 60\n" in text, text
        assert "insecure = no\n" in text and "insecure has changed" in s.said()
        assert o.create()[1].out("df -m --output=size / | tail -1") == "48"
        with open(s.config(), "w") as f:
            f.write("# fine\n\nsandbox_disk = much\n")
        s.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stay in force" in s.said(), "a word about the bad file")
        assert "conf:3: sandbox_disk" in s.said(), s.said()
        assert o.create()[1].out("df -m --output=size / | tail -1") == "48"


@case("certificate and key reach the front, again after SIGHUP")
def tls():
    top = os.environ["T"]
    cert, key = os.path.join(top, "cert"), os.path.join(top, "key")
    for path, text in ((cert, "-----BEGIN CERTIFICATE-----\n1"), (key, "-----BEGIN KEY-----\n1")):
        with open(path, "w") as f:
            f.write(text)
    os.chmod(key, 0o600)
    with Server("--tls-cert", cert, "--tls-key", key) as s:
        o = s.ready()
        assert [t.tell for t in o.tells] == [LISTENER, SETTINGS, TLS, GUARD, EXPORTER, JOURNAL] and o.tells[0].flags == 1
        assert [os.read(f, 100) for f in o.tells[2].fds] == [open(p, "rb").read() for p in (cert, key)]
        o.tells.clear()
        with open(cert, "a") as f:
            f.write("23")
        s.process.send_signal(signal.SIGHUP)
        assert os.read(o.tell(TLS).fds[0], 100).endswith(b"123")


def main():
    if sys.argv[1] == "list":
        for name, (title, _) in CASES.items():
            print(name, title)
        return 0
    CASES[sys.argv[1]][1]()
    return 0


sys.exit(main())
