"""Disks of sandboxes in the scratch store, on a real server: the steps behind scratch_store.sh."""
import glob
import json
import os
import re
import subprocess
import sys
import time
import types

from server_client import Server, until
from worlds import As, check, says

MIB = 1 << 20
OPTIONS = ("--worlds-disk", "1G", "--sandbox-disk", "64M", "--sandbox-memory", "512M", "--pool-max", "2")
# Two files, since one has a limit of its own (RLIMIT_FSIZE).
FULL = "for i in 1 2; do head -c 50000000 /dev/zero 2>&1 > ~/full$i; done | grep -o 'Disk quota exceeded'"


def told(server, text):
    """Whether the server's log has this line."""
    with open(f"{server.state}/log/server.log", encoding="utf-8") as file:
        return [line for line in file if text in line]


def loops():
    """Block devices that are files without a name."""
    out = subprocess.run(["losetup", "-a"], text=True, capture_output=True, check=True).stdout
    return sorted(line.split(":")[0] for line in out.splitlines() if "(deleted)" in line)


def doctor(program, state):
    """Its line about disks."""
    ran = subprocess.run([program, "doctor", "--json"], text=True, capture_output=True, check=False, env=os.environ | {"SANDGLASS_STATE": state})
    return next(c for c in json.loads(ran.stdout)["checks"] if c["name"] == "disks of sandboxes")


def disk(client, s):
    """What the sandbox's figures say, from its bytes in use on."""
    _, samples = client.api("GET", f"/sandboxes/{s['sandboxID']}/metrics")
    return samples[-1]["diskUsed"], samples[-1]["diskTotal"]


def limits(client):
    a, b = client.create(), client.create()
    says("a sandbox that fills its disk is told so", client, a, FULL, "Disk quota exceeded\n")
    full = until(lambda: disk(client, a)[0] > 60 * MIB and disk(client, a), 20)
    check("its figures have its own limit and use", full and full[0] <= full[1] == 64 * MIB, full or disk(client, a))
    says("files do not count as memory", client, a, "cat /sys/fs/cgroup/memory.max", f"{512 * MIB}\n")
    says("its neighbour writes on", client, b, "head -c 50000000 /dev/zero > ~/some && stat -c %s ~/some", "50000000\n")
    says("and can when it has made room", client, a, "rm ~/full*; head -c 50000000 /dev/zero > ~/some && stat -c %s ~/some", "50000000\n")
    says("many small files count too", client, b,
         "mkdir ~/d; cd ~/d; python3 -c 'for i in range(100000): open(str(i), \"w\").write(\"x\" * 3000)' 2>&1 | grep -o 'Disk quota exceeded'",
         "Disk quota exceeded\n")
    return a, b


OWNERS = "stat -c '%u %g %a' /home/user/mine /opt/roots /home/user /opt/d"
OWNED = "1000 1000 600\n0 0 644\n1000 1000 755\n60000 0 1770\n"


def owners(client):
    """Files have the ids of the slot that wrote them: others must see their own."""
    s = client.create()
    client.run_as(s, "user", "umask 77; echo u > ~/mine")
    client.run_as(s, "root", "echo r > /opt/roots; mkdir -m 1770 /opt/d; chown 60000 /opt/d; rm /etc/motd; mkdir /opt/d/deep")
    says("owners are those inside", client, s, OWNERS, OWNED)
    for generation in range(4):
        status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 2})
        made = [f.get("sandbox") for f in forked] if status in (200, 201) else []
        check(f"generation {generation}: two branches are made", len(made) == 2 and all(made), forked)
        for branch in made:
            says("a branch has the same owners", client, branch, OWNERS, OWNED)
            says("its user changes what is the user's", client, branch, f"echo {generation} >> ~/mine; tail -n 1 ~/mine; echo x > /opt/roots 2>/dev/null || echo no",
                 f"{generation}\nno\n")
            says("and root the rest", client, branch, "echo more >> /opt/roots; rmdir /opt/d/deep; mkdir /opt/d/deep; ls -ld /etc/motd 2>/dev/null | wc -l",
                 "0\n", user="root")
            says("after which they are the same", client, branch, OWNERS, OWNED)
        client.api("DELETE", f"/sandboxes/{s['sandboxID']}")
        client.api("DELETE", f"/sandboxes/{made[1]['sandboxID']}")
        s = made[0]
    status, made = client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "owned"})
    check("a snapshot is taken of layers of five slots", status in (200, 201), made)
    one = client.create(templateID="owned")
    says("a sandbox of the snapshot has the same owners", client, one, OWNERS, OWNED)
    says("and the contents of all", client, one, "cat ~/mine", "u\n0\n1\n2\n3\n")
    client.api("POST", f"/sandboxes/{s['sandboxID']}/pause", {"memory": False})
    status, _ = client.api("POST", f"/sandboxes/{s['sandboxID']}/resume", {"timeout": 300})
    check("a branch that was paused with its files alone is resumed", status == 201, status)
    says("with the same owners", client, s, OWNERS, OWNED)
    return one


def fork(client, s):
    """One branch, or what was said instead."""
    status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 1})
    return forked[0]["sandbox"] if status in (200, 201) else (status, forked)


def branches(top):
    """The scratches that are in the place of another one."""
    return {p for p in glob.glob(f"{top}/s[0-9]*/[0-9]*/files") if not p.endswith("/1/files")}


def end(client, s):
    client.api("DELETE", f"/sandboxes/{s['sandboxID']}")


MANY = "mkdir ~/{0}; for i in $(seq 300); do echo {0} > ~/{0}/$i; done; ls ~/{0} | wc -l"
TWICE = """python3 -c '
import collections, os
seen = collections.Counter()
for top, _, names in os.walk("/home/user"):
    for name in names:
        st = os.stat(os.path.join(top, name))
        seen[st.st_dev, st.st_ino] += 1
print(sum(seen.values()) >= {0}, sum(n > 1 for n in seen.values()))'"""


def numbers(client):
    """Programs take two files with one inode number for the same file."""
    s = client.create()
    says("a sandbox writes files", client, s, MANY.format("a"), "300\n")
    line = [s]
    for generation, name in enumerate("bcd", 2):
        line.append(fork(client, line[-1]))
        says(f"generation {generation}: a branch writes others", client, line[-1], MANY.format(name), "300\n")
        says("no two files have one inode number", client, line[-1], TWICE.format(generation * 300), "True 0\n")
    status, made = client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "numbered"})
    check("a snapshot is taken", status in (200, 201), made)
    line.append(client.create(templateID="numbered"))
    says("a sandbox of a snapshot writes others", client, line[-1], MANY.format("e"), "300\n")
    says("and no two of its files have one inode number", client, line[-1], TWICE.format(600), "True 0\n")
    for one in line:
        end(client, one)


def family(client, top):
    """A branch is in its parent's place, and what it wrote goes with it."""
    s = client.create()
    before = branches(top)
    client.run(s, "echo of the parent > ~/f")
    b = fork(client, s)
    client.run(b, "mkdir -p ~/a/b/c; head -c 3000000 /dev/zero > ~/a/b/f")
    there = sorted(branches(top) - before)
    check("a branch has a directory in its parent's place", len(there) == 1, there)
    own = os.path.dirname(there[0])
    place = os.path.dirname(own)
    end(client, b)
    check("its files go when it ends", until(lambda: not os.path.exists(there[0]), 30), os.listdir(place))
    client.run(s, "echo more >> ~/f")
    b = fork(client, s)
    check("and its directory when the next one is made", not os.path.exists(own), os.listdir(place))
    end(client, s)
    says("a branch has its files when the parent has ended", client, b, "cat ~/f", "of the parent\nmore\n")
    end(client, b)
    check("the place goes with the last of them", until(lambda: not os.path.exists(place), 30), os.listdir(top))


def shares(server, client):
    """Checkpoints keep what was written: without end, they fill what the tenant may have, and nothing else."""
    key = subprocess.run([server.program, "key", "create", "--tenant", "other", "--state", server.state], text=True, capture_output=True, check=True)
    other = As(types.SimpleNamespace(port=server.port, key=re.search(r"\be2b_\w+", key.stdout)[0]))
    s, said, written = client.create(), None, 0
    for i in range(40):
        _, out = client.run(s, f"head -c 50000000 /dev/zero 2>&1 > ~/f{i} | grep -o 'Disk quota exceeded'")
        made = None if out else fork(client, s)
        if out or isinstance(made, tuple):
            said = out or made
            break
        written += 50
        end(client, made)
    check("a sandbox that is forked without end is told when its tenant's share is full", said is not None, written)
    check("which is most of the room, and not all of it", 500 <= written < 850, (written, said))
    says("a sandbox of another tenant writes on", other, other.create(), "head -c 50000000 /dev/zero > ~/some && stat -c %s ~/some", "50000000\n")
    says("the first one can remove files", client, s, f"rm -f ~/f{i} && ls ~/f{i} 2>/dev/null | wc -l", "0\n")
    end(client, s)

    def writes():
        made = [client.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 60}) for _ in range(6)]
        made = [one for status, one in made if status == 201]
        outs = [client.run(one, "head -c 50000000 /dev/zero > ~/some && stat -c %s ~/some")[1] for one in made]
        for one in made:
            end(client, one)
        return outs == ["50000000\n"] * 6
    check("when it has ended, its tenant has room again", until(writes, 60))


def copies(client):
    """Copies of a file that share its contents take no room here, and would in a snapshot."""
    s = client.create()
    says("copies on a small disk share their contents", client, s,
         "head -c 20000000 /dev/urandom > ~/f; for i in $(seq 20); do cp --reflink=always ~/f ~/f$i; done; ls ~/f* | wc -l", "21\n")
    status, answer = client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "copies"})
    check("a snapshot of more than the disk is refused", status == 409 and "share their contents" in answer["message"], (status, answer))
    says("the sandbox goes on", client, s, "cat ~/f* | wc -c", "420000000\n")
    status, _ = client.api("POST", f"/sandboxes/{s['sandboxID']}/pause")
    check("and can be paused with its memory", status == 204, status)
    end(client, s)


def grows(client, top):
    """What was frozen does not take from what can be written."""
    before = branches(top)
    s = client.create()
    for i in range(3):
        says("a checkpoint leaves the whole limit", client, s, f"head -c 50000000 /dev/zero > ~/f{i} && stat -c %s ~/f{i}", "50000000\n")
        status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 1})
        check("a branch is made", status in (200, 201) and forked[0].get("sandbox"), forked)
        client.api("DELETE", f"/sandboxes/{forked[0]['sandbox']['sandboxID']}")
    check("branches are gone", until(lambda: branches(top) <= before, 30), branches(top))
    says("and no more than that", client, s, FULL, "Disk quota exceeded\n")


def merges(client):
    """More forks in a row than a sandbox can have layers: they are merged meanwhile."""
    s, statuses = client.create(), []
    for i in range(60):
        client.run(s, f"echo {i} >> ~/lines; echo {i} > ~/f{i}")
        status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 1})
        statuses.append(status)
        if status in (200, 201):
            branch = forked[0]["sandbox"]
            client.api("DELETE", f"/sandboxes/{branch['sandboxID']}")
    check("60 forks in a row are made", set(statuses) <= {200, 201}, statuses)
    says("and nothing is lost", client, s, "wc -l < ~/lines; ls ~/f* | wc -l; stat -c %u ~/f7", "60\n60\n1000\n")


def top_of(server):
    fds = f"/proc/{server.process.pid}/fd"
    return next(p for p in (f"{fds}/{n}" for n in os.listdir(fds)) if os.path.isdir(p) and glob.glob(f"{p}/s[0-9]*/1/files"))


def ends(server, client, before):
    """The places of sandboxes that end are removed, and the scratch store with the server, however it ends."""
    top = top_of(server)
    made = [client.create() for _ in range(5)]
    for s in made:
        client.run(s, "mkdir -p ~/a/b; head -c 3000000 /dev/zero > ~/a/b/f")
    places = [p.split("/files/")[0] for p in glob.glob(f"{top}/s[0-9]*/1/files/u*/home/user/a/b/f")]
    for s in made:
        end(client, s)
    check("places of sandboxes that end are removed", len(places) == 5 and until(lambda: not any(map(os.path.exists, places)), 30), places)
    client.create()
    server.kill()
    check("nothing is left of the scratch store of a server that was killed", until(lambda: loops() == before, 30), loops())
    server.start()
    says("the next start has an empty one", As(server), As(server).create(), "echo new > ~/f; cat ~/f", "new\n")
    check("the server ends well", server.stop() == 0)
    check("and then nothing is left either", until(lambda: loops() == before, 30), loops())


def in_memory(program, folder):
    """Without room, or where it makes no sense, disks are in memory, and the log says why."""
    os.makedirs(f"{folder}/small")
    with open(f"{folder}/image", "wb") as file:
        file.truncate(200 * MIB)
    subprocess.run(["mkfs.ext4", "-q", f"{folder}/image"], check=True)
    subprocess.run(["mount", "-o", "loop", f"{folder}/image", f"{folder}/small"], check=True)
    try:
        for what, state, options, text, wanted in (
                ("a full disk", f"{folder}/small/state", (), "half of what is free in the state directory is", "warn half of"),
                ("a state directory in memory", f"/dev/shm/{os.path.basename(folder)}", (), "the state directory is in memory", "warn the state directory"),
                ("the operator's wish", f"{folder}/wish", ("--worlds-disk", "0"), "disks of sandboxes: in memory\"", "ok None")):
            server = Server(program, state, *(options or OPTIONS))
            server.start()
            check(f"{what}: the log says that disks are in memory", until(lambda server=server, text=text: told(server, text)), text)
            said = doctor(program, state)
            check(f"{what}: and so does doctor", said["value"].startswith("in memory") and wanted in f"{said['state']} {said['fix']}", said)
            says(f"{what}: sandboxes have one", As(server), As(server).create(), "df -m / | tail -n 1 | awk '{print $1 != \"\", $3 < 5}'", "1 1\n")
            check(f"{what}: the server ends well", server.stop() == 0)
            subprocess.run(["rm", "-rf", state], check=True)
    finally:
        time.sleep(0.2)
        subprocess.run(["umount", f"{folder}/small"], check=True)


def by_itself(program, folder):
    """What a server does that nobody has told anything."""
    os.environ.pop("SANDGLASS_WORLDS_DISK")
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    server = Server(program, f"{folder}/itself", "--sandbox-disk", "64M")
    server.start()
    client = As(server)
    s = client.create()
    if free < 8 << 30:
        check("with little room, disks are in memory", told(server, "disks of sandboxes: in memory, since a quarter of"), free)
        says("their limit holds", client, s, FULL.replace("Disk quota exceeded", "No space left on device"), "No space left on device\n")
    else:
        found = told(server, "MiB of the state directory (btrfs)")
        size = int(re.search(r"(\d+) MiB", found[0])[1]) if found else 0
        check("disks are on disk, on a part of what is free", 2048 <= size <= 16384 and size <= free * 1.1 / 4 / MIB, found)
        says("a sandbox's disk is there", client, s, f"df -m / | awk 'END {{ print ($2 > {size * 0.9}) }}'", "1\n")
        says("and its limit holds", client, s, FULL, "Disk quota exceeded\n")
    check("the server ends well", server.stop() == 0)


def main():
    program, folder = sys.argv[1:3]
    before = loops()
    server = Server(program, f"{folder}/state", *OPTIONS)
    server.start()
    client = As(server)
    check("the log says where disks are", told(server, "disks of sandboxes: 1024 MiB of the state directory (btrfs)"))
    said = doctor(program, server.state)
    check("and so does doctor", (said["state"], said["value"]) == ("ok", "1024 MiB of the state directory (btrfs)"), said)
    limits(client)
    owners(client)
    grows(client, top_of(server))
    numbers(client)
    family(client, top_of(server))
    copies(client)
    merges(client)
    shares(server, client)
    ends(server, client, before)
    in_memory(program, folder)
    by_itself(program, folder)


if __name__ == "__main__":
    main()
