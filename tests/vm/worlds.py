"""Worlds, disks and volumes on the kernel of the virtual machine: the steps behind worlds.sh."""
import base64
import contextlib
import glob
import os
import pathlib
import re
import subprocess
import sys
import tarfile

from lib import PATIENCE_S, Client, Server, check, equal, until
import world_root

PROGRAMS = ["bash", "cat", "dd", "df", "grep", "head", "id", "ls", "mkdir", "rm", "sha256sum", "sleep", "stat", "sync", "tail", "touch", "wc"]
DISK = 24 << 20
FULL = r"No space left|Disk quota exceeded"


def libraries(paths):
    text = subprocess.run(["ldd", *paths], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", text, re.M)))


def make_root(path):
    """A root file system of a few programs, in two directories of which one is full of small files."""
    programs = [f"/usr/bin/{name}" for name in PROGRAMS]
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name in ("usr", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "usr/local", "usr/share", "etc", "var", "run", "proc", "sys", "dev", "home"):
            world_root.put(tar, name, 0o755)
        world_root.put(tar, "tmp", 0o1777)
        world_root.put(tar, "root", 0o700)
        world_root.put(tar, "home/user", 0o755, uid=1000)
        for name, target in world_root.LINKS.items():
            world_root.put(tar, name, 0o777, link=target)
        for name in (*programs, *libraries(programs)):
            real = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
            tar.add(os.path.realpath(name), real)
        for name in ("etc/passwd", "etc/group", "etc/nsswitch.conf", "marker"):
            world_root.put(tar, name, 0o644, world_root.TEXTS[name])
        for i in range(300):
            world_root.put(tar, f"usr/share/many/{i}", 0o644, f"file {i}\n")


class As(Client):
    """Also runs commands as root."""
    user = "user"

    def data_headers(self, sandbox, content_type):
        said = base64.b64encode(f"{self.user}:".encode()).decode()
        return super().data_headers(sandbox, content_type) | {"Authorization": f"Basic {said}"}

    def run_as(self, user, sandbox, command):
        self.user = user
        return self.run(sandbox, command)


def says(what, client, sandbox, command, output, user="user"):
    equal(what, client.run_as(user, sandbox, command), (0, output))


def loops():
    """Files of a state directory that are behind loop devices."""
    found = []
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it goes meanwhile
            found.append(pathlib.Path(path).read_text().strip())
    return sorted(name for name in found if name.startswith(sys.argv[2]))


def places(server):
    """Disks of sandboxes, if they are in the state directory."""
    return glob.glob(f"{server.state}/disks.d/s[0-9]*")


def mounts():
    return [line for line in open("/proc/self/mountinfo") if "erofs" in line or "/run/sandglass" in line]


def begin(state, *options):
    server = Server(sys.argv[1], state, *options)
    server.start(PATIENCE_S)
    return server, As(server, PATIENCE_S)


def imported(server, tar):
    ran = subprocess.run([server.program, "world", "import", "--state", server.state, "--name", "small", tar],
                         capture_output=True, text=True, check=False)
    check("a root file system becomes a template", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")


def world(client):
    one = client.create(templateID="small")
    says("a sandbox has its files", client, one, "cat /marker; cat /usr/share/many/7; ls /usr/share/many | wc -l", "a file of the world\nfile 7\n300\n")
    says("owned by its root, and the user's home by the user", client, one, "stat -c %u:%g /marker /home/user; id -u", "0:0\n1000:1000\n1000\n")
    says("/usr is covered, and cannot be written to", client, one, "grep -c \" /usr \" /proc/self/mountinfo; touch /usr/x 2>/dev/null || echo no", "1\nno\n")
    says("files can be written", client, one, "echo mine >~/f && rm -f /tmp/none && cat ~/f && stat -c %u ~/f", "mine\n1000\n")
    says("root changes /usr, too", client, one, "rm /usr/share/many/7 && echo new >/usr/share/many/new && ls /usr/share/many | wc -l", "300\n",
         user="root")
    two = client.create(templateID="small")
    says("another sandbox has nothing of that", client, two, "cat /usr/share/many/7; ls ~/f /usr/share/many/new 2>/dev/null | wc -l", "file 7\n0\n")
    return one


def snapshot(client, sandbox):
    status, made = client.api("POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {})
    check("a snapshot is made of it", status == 201, made)
    says("which goes on", client, sandbox, "cat ~/f", "mine\n")
    copy = client.create(templateID=made["snapshotID"])
    says("a sandbox of the snapshot has what was written, over the world", client, copy,
         "cat ~/f /usr/share/many/new /marker; ls /usr/share/many/7 2>/dev/null | wc -l", "mine\nnew\na file of the world\n0\n")
    equal("it is paused without memory", client.api("POST", f"/sandboxes/{copy['sandboxID']}/pause", {"memory": False})[0], 204)
    equal("... and comes back", client.api("POST", f"/sandboxes/{copy['sandboxID']}/connect", {"timeout": 300})[0], 201)
    says("... with its files", client, copy, "cat ~/f", "mine\n")


def full(client, size):
    one, other = client.create(templateID="small"), client.create(templateID="small")
    status, output = client.run_as("user", one, f"dd if=/dev/zero of=~/big bs=1M count={(size >> 20) + 64} 2>&1; ls -s --block-size=1 ~/big")
    check("a disk has its limit", re.search(FULL, output), (status, output))
    says("another sandbox still writes", client, other, "head -c 1000000 /dev/zero >~/a && sync && echo done", "done\n")
    says("what is removed can be written again", client, one, "rm ~/big && sync && head -c 1000000 /dev/zero >~/b && sync && echo done", "done\n")
    return one


def limits(server, client):
    """statfs in a sandbox tells of its own disk, and files have a limit too, since inodes do not count."""
    one = client.create(templateID="small")
    says("df shows the sandbox's disk", client, one, "df -B1 --output=size / /tmp | tail -n 2", f"{DISK:>9}\n{DISK:>9}\n")
    status, output = client.run_as("user", one, f"mkdir ~/d && cd ~/d && touch {{1..{DISK // 4096 + 200}}} 2>&1 | head -n 1")
    check("many empty files are refused", re.search(FULL, output), (status, output))
    gone = places(server)
    client.api("DELETE", f"/sandboxes/{one['sandboxID']}")
    if gone:
        check("what a sandbox has written goes with it", until(lambda: set(gone) - set(places(server)), PATIENCE_S), gone)


def branch(client):
    one = client.create(templateID="small")
    says("a sandbox writes", client, one, "echo before >~/f && cat ~/f", "before\n")
    status, forked = client.api("POST", f"/sandboxes/{one['sandboxID']}/fork", {"count": 1})
    check("its files are forked", status == 201 and forked[0].get("sandbox"), forked)
    says("the branch has them, over the world", client, forked[0]["sandbox"], "echo mine >>~/f; cat ~/f /marker", "before\nmine\na file of the world\n")
    says("the other has its own", client, one, "cat ~/f", "before\n")


def volume(client):
    status, made = client.api("POST", "/volumes", {"name": "data"})
    check("a volume is made", status == 201, made)
    mount = {"templateID": "small", "volumeMounts": [{"name": "data", "path": "/mnt/data"}]}
    one, two = client.create(**mount), client.create(**mount)
    says("a sandbox writes to it", client, one, "echo shared >/mnt/data/f && stat -c %u /mnt/data/f", "1000\n")
    says("another one reads that", client, two, "cat /mnt/data/f", "shared\n")
    headers = {"Authorization": f"Bearer {made['token']}"}
    equal("and the server", client.raw("GET", f"/volumecontent/{made['volumeID']}/file?path=/f", headers=headers), (200, b"shared\n"))


def killed(server, client, own):
    """Everything that the kernel holds for the server goes with it."""
    print(f"# loop devices: {loops()}")
    server.kill()
    equal("no loop device is left of a server that was killed", until(lambda: loops() == own, PATIENCE_S) and loops(), own)
    equal("no mount is left", mounts(), [])
    server.start(PATIENCE_S)
    one = client.create(templateID="small", volumeMounts=[{"name": "data", "path": "/mnt/data"}])
    says("the next one has worlds and volumes", client, one, "cat /marker /mnt/data/f", "a file of the world\nshared\n")


def everything(where, kind, *options):
    own = loops()  # of the state directory
    server, client = begin(where, "--sandbox-disk", str(DISK), *options)
    with open(f"{server.state}/disks", encoding="ascii") as file:
        said = file.read().strip()
    check(f"disks are where they should be: {kind}", said.endswith(kind), said)
    imported(server, f"{sys.argv[2]}/root.tar")
    snapshot(client, world(client))
    full(client, DISK)
    if kind != "in memory":
        branch(client)
        limits(server, client)
    volume(client)
    killed(server, client, own)
    equal("the server ends", server.stop(), 0)
    equal("nothing is left in use", (until(lambda: loops() == own, PATIENCE_S), mounts()), (True, []))



def projects():
    """On an xfs with project quotas the disks are directories of the state directory."""
    file, where = f"{sys.argv[2]}/xfs", f"{sys.argv[2]}/projects"
    os.makedirs(where)
    with open(file, "wb") as image:
        image.truncate(700 << 20)
    subprocess.run(["mkfs.xfs", "-q", file], check=True)
    subprocess.run(["mount", "-o", "loop,prjquota", file, where], check=True)
    before = loops()
    everything(f"{where}/state", "(project quotas)", "--worlds-disk", "256M")
    subprocess.run(["umount", where], check=True)
    equal("its own device goes, too", until(lambda: not loops(), PATIENCE_S) and before != [], True)


os.makedirs(sys.argv[2], exist_ok=True)
make_root(f"{sys.argv[2]}/root.tar")
everything(f"{sys.argv[2]}/memory", "in memory", "--worlds-disk", "0")
everything(f"{sys.argv[2]}/disk", "(xfs)", "--worlds-disk", "320M")
projects()
