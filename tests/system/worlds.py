"""Templates that are whole root file systems, on a real server: the steps behind worlds.sh."""
import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time

import world_root
from pull import Real, free_port
from server_client import Client, Server, until

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def says(what, client, sandbox, command, output, user="user", status=0):
    got = client.run_as(sandbox, user, command)
    check(what, got == (status, output), got)


class As(Client):
    """Also runs commands as root."""

    def run_as(self, sandbox, user, command):
        self.user = user
        return self.run(sandbox, command)

    def data_headers(self, sandbox, content_type):
        headers = super().data_headers(sandbox, content_type)
        user = getattr(self, "user", "user")
        return headers | {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}

    def cell(self, sandbox, code):
        """What a cell prints; the whole answer if it fails."""
        headers = self.data_headers(sandbox, "application/json") | {"E2b-Sandbox-Port": "49999"}
        status, data = self.raw("POST", "/execute", json.dumps({"code": code}), headers)
        lines = [json.loads(line) for line in data.decode().splitlines() if line] if status == 200 else []
        failed = status != 200 or any(line.get("type") == "error" for line in lines)
        return data.decode() if failed else "".join(line.get("text", "") for line in lines if line.get("type") == "stdout")


def sandglass(server, *arguments, seconds=120, **more):
    return subprocess.run([server.program, *arguments], text=True, capture_output=True, check=False, timeout=seconds, **more)


def imported(server, folder):
    world_root.make(f"{folder}/root.tar")
    ran = sandglass(server, "world", "import", "--state", server.state, "--name", "small:one", "--json", f"{folder}/root.tar")
    made = json.loads(ran.stdout) if ran.returncode == 0 else {}
    check("a root file system becomes a template", made.get("name") == "small:one" and made.get("files", 0) > 1000,
          f"{ran.stdout} {ran.stderr}")
    names = sorted(os.listdir(f"{server.state}/worlds"))
    check("its files are in one folder, and nothing else is left", names == [made.get("id")] and
          sorted(os.listdir(f"{server.state}/worlds/{made['id']}")) == ["0", "meta"], names)
    return made["id"]


def looks(client):
    s = client.create(templateID="small:one")
    says("a sandbox has the world's files", client, s, "cat /marker; . /etc/os-release; echo $ID", "a file of the world\nworld\n")
    says("and nothing of the host's", client, s, "ls -d /usr/share/locale/de /etc/ld.so.cache 2>/dev/null | wc -l; cat /etc/debian_version",
         "0\nof the test\n")
    says("programs are its own", client, s, "python3 -c 'print(6*7)'; command -v sudo", "42\n/usr/local/bin/sudo\n")
    says("its home can be written to", client, s, "echo mine > ~/f && cat ~/f && touch /usr/bin/x 2>/dev/null || echo no", "mine\nno\n")
    says("names lead nowhere odd", client, s, "readlink -f /lib; stat -c '%U %a' /tmp /root; cat /proc/1/comm 2>/dev/null | wc -l",
         "/usr/lib\nroot 1777\nroot 700\n1\n")
    says("/usr is covered until root needs it", client, s, "grep -c ' /usr ' /proc/self/mountinfo", "1\n")
    return s


PACKAGE = """set -e
mkdir -p /tmp/p/DEBIAN /tmp/p/usr/bin && cd /tmp
printf 'Package: hello-world\\nVersion: 1\\nArchitecture: all\\nMaintainer: t <t@example.org>\\nDescription: says hello\\n' > p/DEBIAN/control
printf '#!/bin/sh\\necho hello from a package\\n' > p/usr/bin/hello-world && chmod 755 p/usr/bin/hello-world
dpkg-deb --root-owner-group -b p /repo/hello.deb >/dev/null
cd /repo && (cat /tmp/p/DEBIAN/control; echo Filename: ./hello.deb; echo Size: $(stat -c %s hello.deb);
  echo SHA256: $(sha256sum hello.deb | cut -d' ' -f1)) > Packages
apt-get update -qq && apt-get install -qq -y hello-world >/dev/null && hello-world"""


def installs(client, s):
    """With a program that runs from before /usr could be written to."""
    pid = client.spawn(s, "sleep 300")
    says("packages can be installed, as root", client, s, PACKAGE, "hello from a package\n", user="root")
    says("the cover is gone then", client, s, "grep -c ' /usr ' /proc/self/mountinfo", "0\n", status=1)
    says("everybody has them", client, s, "hello-world; dpkg -s hello-world | grep Status", "hello from a package\nStatus: install ok installed\n")
    says("a program that ran meanwhile runs on", client, s, f"kill -0 {pid} && echo runs", "runs\n")
    says("sudo can too", client, s, "sudo touch /usr/bin/by-sudo && ls /usr/bin/by-sudo", "/usr/bin/by-sudo\n")
    says("what root removes is gone", client, s, "sudo rm /usr/bin/by-sudo /marker; ls /usr/bin/by-sudo /marker 2>/dev/null | wc -l", "0\n")
    says("users and groups can be made", client, s, "groupadd staff2 && useradd -m -G staff2 -s /bin/bash bob && id -nG bob && ls -d /home/bob",
         "bob staff2\n/home/bob\n", user="root")
    other = client.create(templateID="small:one")
    says("another sandbox has nothing of that", client, other, "cat /marker; ls /usr/bin/hello-world 2>/dev/null | wc -l",
         "a file of the world\n0\n")
    return other


def begins_with_sudo(client):
    """Root's first program is one that a user starts."""
    s = client.create(templateID="small:one")
    says("sudo takes the cover off, too", client, s, "cd /usr/share; sudo touch x; sudo touch y; ls /usr/share/x /usr/share/y",
         "/usr/share/x\n/usr/share/y\n")
    says("from where it was in /usr, too", client, s, "cd /usr/share; sudo touch z; sudo rm z; sudo pwd; cd /usr; sudo pwd",
         "/usr/share\n/usr\n")
    says("root goes on after that", client, s, "id -u", "0\n", user="root")
    status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 1})
    made = forked[0].get("sandbox") if status in (200, 201) else None
    check("and a branch can be made", made, forked)
    if made:
        says("which has all of it", client, made, "ls /usr/share/x", "/usr/share/x\n")


def started_in(client, s, folder, command):
    client.user = "root"
    return client.run(s, command, process={"cmd": "/bin/sh", "args": ["-c", command], "cwd": folder})


def begins_in_usr(client):
    """The working directory of root's first program is in what was covered."""
    s = client.create(templateID="small:one")
    status, output = started_in(client, s, "/usr/share", "pwd -P; touch z; ls /usr/share/z")
    check("root's first program can write to where it is in /usr", (status, output) == (0, "/usr/share\n/usr/share/z\n"), (status, output))


def without_local(client):
    """Root may remove what other sandboxes cannot: /usr/local, which has sudo and the kernels."""
    for what, command, output in (("is gone", "rm -rf /usr/local", ""), ("is a link", "rm -rf /usr/local; ln -s /opt /usr/local", "/usr/local\n")):
        s = client.create(templateID="small:one")
        client.run_as(s, "root", command)
        status, forked = client.api("POST", f"/sandboxes/{s['sandboxID']}/fork", {"count": 1})
        made = forked[0].get("sandbox") if status in (200, 201) else None
        check(f"where /usr/local {what} a branch can be made", made, forked)
        if made:
            says("which is as it was", client, made, "ls -d /usr/local 2>/dev/null; cat /marker", output + "a file of the world\n")
        client.api("POST", f"/sandboxes/{s['sandboxID']}/pause", {"memory": False})
        status, told = client.api("POST", f"/sandboxes/{s['sandboxID']}/resume", {"timeout": 300})
        check("and the sandbox can be resumed", status == 201, told)
        if status == 201:
            says("as it was", client, s, "ls -d /usr/local 2>/dev/null; cat /marker", output + "a file of the world\n")


def snapshots(client, s):
    status, made = client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "installed"})
    check("a snapshot of it can be taken", status in (200, 201), made)
    one = client.create(templateID="installed")
    says("and a sandbox of the snapshot has world and changes", client, one,
         "hello-world; cat /home/user/f; ls /marker 2>/dev/null | wc -l; python3 -c 'print(1)'", "hello from a package\nmine\n0\n1\n")
    says("which has no cover", client, one, "grep -c ' /usr ' /proc/self/mountinfo", "0\n", status=1)
    says("root goes on from there", client, one, "echo more > /usr/share/more; cat /usr/share/more", "more\n", user="root")
    status, _ = client.api("POST", f"/sandboxes/{s['sandboxID']}/pause", {"memory": False})
    check("it can be paused with its files alone", status == 204, status)
    status, _ = client.api("POST", f"/sandboxes/{s['sandboxID']}/resume", {"timeout": 300})
    check("and be resumed", status == 201, status)
    says("with world and changes", client, s, "hello-world; ls /marker 2>/dev/null | wc -l", "hello from a package\n0\n")
    return one


def branches(client, s, plain):
    """Branches take the files along; the world's kernels are not copied."""
    for what, source, command, output in (
            ("a branch of a sandbox whose /usr changed", s, "hello-world; cat ~/f", "hello from a package\nmine\n"),
            ("a branch of one whose /usr did not", plain, "cat /marker; python3 -c 'print(2)'", "a file of the world\n2\n")):
        status, forked = client.api("POST", f"/sandboxes/{source['sandboxID']}/fork", {"count": 1})
        made = forked[0].get("sandbox") if status in (200, 201) else None
        check(f"{what} is made", made, forked)
        if made:
            says(f"{what} has its files", client, made, command, output)
            says(f"{what} can be written to by root", client, made, "echo x > /usr/bin/branch && cat /usr/bin/branch", "x\n", user="root")
        says(f"{what} leaves it as it was", client, source, command, output)


def users(client):
    """A world has users of its own."""
    s = client.create(templateID="small:one")
    says("users of the world can run commands", client, s, "id -un; id -g; pwd; echo $HOME", "postgres\n110\n/var/tmp\n/var/tmp\n", user="postgres")
    says("and so can those that are made", client, s,
         "useradd -m -U -s /bin/sh alice && sudo -u alice sh -c 'id -un; cd; pwd' && id -u alice",
         "alice\n/home/alice\n1001\n", user="root")
    says("and be named", client, s, "id -un; touch mine; ls -l mine | cut -d' ' -f3-4; touch /usr/bin/x 2>/dev/null || echo no",
         "alice\nalice alice\nno\n", user="alice")
    says("an id is enough", client, s, "id -u; id -g; pwd", "4711\n0\n/\n", user="4711")


def differences(server, client):
    """What a sandbox of a world, and a snapshot of it, changed."""
    def listed(*names):
        ran = subprocess.run([server.program, "diff", "--url", f"http://127.0.0.1:{server.port}", *names], text=True,
                             capture_output=True, check=False, timeout=60, env=os.environ | {"E2B_API_KEY": server.key})
        return ran.stdout if ran.returncode == 0 else f"{ran.returncode}: {ran.stderr}"

    s = client.create(templateID="small:one")
    check("a new sandbox differs in nothing", listed(s["sandboxID"]) == "", listed(s["sandboxID"]))
    client.run_as(s, "root", "rm /marker; echo more >> /etc/passwd; mkdir -p /opt/app; echo 1 > /opt/app/f; ln -s x /opt/l; chmod 700 /srv 2>/dev/null")
    told = [line for line in listed(s["sandboxID"]).splitlines() if "/opt" in line or "/etc" in line or "/marker" in line]
    wanted = ["M      410 B  /etc/passwd", "D       20 B  /marker", "A          -  /opt/app/", "A        2 B  /opt/app/f", "A          -  /opt/l"]
    check("its changes are listed, against the world", [line.split()[0::3] for line in told if "passwd" not in line and "/opt/" != line[-5:]] ==
          [line.split()[0::3] for line in wanted if "passwd" not in line] and any(line.startswith("M") and "passwd" in line for line in told), told)
    client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "changed"})
    client.run_as(s, "root", "rm -r /opt/app; touch /opt/after")
    check("against a snapshot, what came after it", listed(s["sandboxID"], "changed") == "A        0 B  /opt/after\nD          -  /opt/app/\n",
          listed(s["sandboxID"], "changed"))
    client.api("POST", f"/sandboxes/{s['sandboxID']}/snapshots", {"name": "later"})
    check("two snapshots", listed("later", "changed") == "A        0 B  /opt/after\nD          -  /opt/app/\n", listed("later", "changed"))
    check("a snapshot, against its world", "D       20 B  /marker\n" in listed("later"), listed("later"))
    plain = client.create()
    client.api("POST", f"/sandboxes/{plain['sandboxID']}/snapshots", {"name": "plain"})
    check("not against what stands on something else", "different templates" in listed("later", "plain"), listed("later", "plain"))
    check("nor against what has no files", "comes with the server" in listed("later", "base"), listed("later", "base"))
    other = client.create(templateID="changed")
    check("a sandbox of a snapshot differs in nothing from it", listed(other["sandboxID"]) == "", listed(other["sandboxID"]))


WATCH = """
import ctypes, select, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0o4000)
libc.inotify_add_watch(fd, b"/usr/lib/apt/methods", 0xfff)
open("/tmp/ready", "w").close()
print(len(select.select([fd], [], [], 3)[0]))
"""


def crossed(client):
    """Whether two sandboxes of one world notice a lock and a watch of each other."""
    one, other = (client.create(templateID="small:one") for _ in range(2))
    client.user = "user"
    client.spawn(one, "flock /usr/bin/dpkg sleep 60")
    client.spawn(one, f"python3 -c '{WATCH}' > /tmp/seen")
    until(lambda: client.run_as(one, "user", "ls /tmp/ready")[0] == 0, 10)
    client.run_as(other, "user", "ls /usr/lib/apt/methods > /dev/null")
    locked = client.run_as(other, "user", "flock -n /usr/bin/dpkg true")[0] != 0
    until(lambda: client.run_as(one, "user", "cat /tmp/seen")[1] != "", 10)
    return locked, client.run_as(one, "user", "cat /tmp/seen")[1] == "1\n"


def strict(program, folder):
    """With `strict` they do not."""
    server = Server(program, f"{folder}/strict", "--strict", "yes")
    server.start()
    try:
        sandglass(server, "world", "import", "--state", server.state, "--name", "small:one", f"{folder}/root.tar")
        check("with `strict` sandboxes of one image notice neither locks nor watches of each other", crossed(As(server)) == (False, False))
    finally:
        check("and that server ends", server.stop() == 0)


def cells(client, s):
    text = client.cell(s, "import sys, os; print(sys.version_info[0], os.path.exists('/marker'))")
    check("cells run in the world's own Python", text == "3 True\n", text)


def builds(client):
    """E2B's builds begin with a world as with any template."""
    status, made = client.api("POST", "/v3/templates", {"name": "built"})
    ids = f"/templates/{made.get('templateID')}/builds/{made.get('buildID')}"
    steps = [{"type": kind, "args": args, "force": False} for kind, args in (
        ("USER", ["root"]), ("RUN", ["echo built > /usr/share/built && mkdir -p /opt/app"]), ("ENV", ["COLOUR", "green"]),
        ("WORKDIR", ["/opt/app"]), ("RUN", ["pwd > where; rm /marker"]), ("USER", ["user"]))]
    client.api("POST", f"/v2{ids}", {"fromImage": "docker.io/library/small:one", "steps": steps})
    until(lambda: client.api("GET", f"{ids}/status?logsOffset=0")[1]["status"] in ("ready", "error"), 60)
    status, told = client.api("GET", f"{ids}/status?logsOffset=0")
    check("a template can be built on an image that was fetched", told["status"] == "ready", told)
    says("with all that its steps did", client, client.create(templateID="built"),
         "cat /usr/share/built /opt/app/where; echo $COLOUR; ls /marker 2>/dev/null | wc -l", "built\n/opt/app\ngreen\n0\n")
    status, _ = client.api("DELETE", f"/templates/{made['templateID']}")
    check("and be deleted", status == 204, status)


def add(tar, name, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), 1700000000, 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def upper_layer(path):
    """What a second layer changes."""
    with tarfile.open(path, "w") as tar:
        add(tar, ".wh.marker")
        add(tar, "usr/bin/added", b"#!/bin/sh\necho added\n", mode=0o755)
        add(tar, "usr/share/deep/.wh..wh..opq")


def docker_save(folder):
    """An image of two layers, as `docker save` writes it."""
    layers = [f"{folder}/root.tar", f"{folder}/upper.tar"]
    upper_layer(layers[1])
    sums = []
    for layer in layers:
        with open(layer, "rb") as file:
            sums.append(hashlib.file_digest(file, "sha256").hexdigest())
    config = json.dumps({"architecture": "amd64" if os.uname().machine == "x86_64" else "arm64", "os": "linux", "config": {"Env": ["A=b"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + s for s in sums]}}).encode()
    with tarfile.open(f"{folder}/image.tar", "w") as tar:
        for layer, name in zip(layers, ("one/layer.tar", "two/layer.tar")):
            tar.add(layer, name)
        add(tar, "config.json", config)
        add(tar, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": ["mine:1"],
                                               "Layers": ["one/layer.tar", "two/layer.tar"]}]).encode())
    return f"{folder}/image.tar"


def images(server, client, folder):
    archive = docker_save(folder)
    with open(archive, "rb") as file:
        ran = sandglass(server, "world", "import", "--image", "--state", server.state, "--name", "saved", "-", stdin=file)
    check("what docker save writes becomes a template", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")
    says("its layers are one file system", client, client.create(templateID="saved"), "added; ls /marker 2>/dev/null | wc -l", "added\n0\n")
    registry = Real(folder, free_port())
    try:
        to = f"docker://{registry.host}/mine:1"
        subprocess.run(["skopeo", "copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", f"docker-archive:{archive}", to], check=True)
        ask = ["world", "pull", "--state", server.state, "--name", "pulled", f"{registry.host}/mine:1"]
        ran = sandglass(server, *ask)
        check("a registry inside must be allowed", ran.returncode == 1 and ran.stderr.count("\n") == 1, f"{ran.stdout} {ran.stderr}")
        ran = sandglass(server, *ask, "--insecure", registry.host)
        check("an image of a registry becomes a template", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")
        ran = sandglass(server, "world", "pull", "--state", server.state, "--name", "none", "--insecure", registry.host,
                        f"{registry.host}/mine:2")
        check("one that is not there is refused with one line", ran.returncode == 1 and ran.stderr.count("\n") == 1, ran.stderr)
    finally:
        registry.end()
    says("its layers are one file system", client, client.create(templateID="pulled"), "added; ls /marker 2>/dev/null | wc -l", "added\n0\n")
    for name in ("saved", "pulled"):
        client.api("DELETE", f"/templates/{name}")
    left = [n for n in os.listdir(f"{server.state}/worlds") if n.startswith("new-")]
    check("nothing is left of images", left == [], left)


def ends_while_saved(server, client, folder):
    """A sandbox whose template is gone is killed while its files are saved: nothing stands on the world then."""
    ran = sandglass(server, "world", "import", "--state", server.state, "--name", "brief", "--json", f"{folder}/root.tar")
    gone = f"gone-{json.loads(ran.stdout)['id']}"
    s = client.create(templateID="brief")
    client.run_as(s, "user", "head -c 150000000 /dev/urandom > ~/large")
    client.api("DELETE", "/templates/brief")
    held = until(lambda: gone in os.listdir(f"{server.state}/worlds"))
    pause = threading.Thread(target=As(server).api, args=("POST", f"/sandboxes/{s['sandboxID']}/pause", {"memory": False}))
    pause.start()
    time.sleep(0.1)
    client.api("DELETE", f"/sandboxes/{s['sandboxID']}")
    pause.join()
    check("a world goes when nothing stands on it, also if a save was interrupted",
          held and until(lambda: gone not in os.listdir(f"{server.state}/worlds"), 30), os.listdir(f"{server.state}/worlds"))


def kept(server, folder, world):
    """Over a restart, and in a backup."""
    check("the server ends well", server.stop() == 0)
    server.start()
    client = As(server)
    names = until(lambda: (n := os.listdir(f"{server.state}/worlds")) == [world] and n)
    check("of worlds that were deleted nothing is left", names, os.listdir(f"{server.state}/worlds"))
    says("after a restart the template is there", client, client.create(templateID="small:one"), "cat /marker", "a file of the world\n")
    says("and the snapshot that stands on it", client, client.create(templateID="installed"), "hello-world", "hello from a package\n")
    ran = sandglass(server, "backup", "--state", server.state, "--json", f"{folder}/backup")
    check("a backup has both", ran.returncode == 0 and json.loads(ran.stdout)["leftOut"] == [] and
          os.listdir(f"{folder}/backup/worlds") == [world], f"{ran.stdout} {ran.stderr}")
    server.stop()
    new = Server(server.program, f"{folder}/new")
    new.key = server.key
    ran = sandglass(new, "restore", "--state", new.state, f"{folder}/backup")
    check("it is restored elsewhere", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")
    new.start()
    client = As(new)
    says("with its world", client, client.create(templateID="installed"), "hello-world; ls /marker 2>/dev/null | wc -l", "hello from a package\n0\n")
    status, _ = client.api("DELETE", "/templates/small:one")
    check("the world can be deleted", status == 204, status)
    status, _ = client.api("POST", "/v2/sandboxes", {"templateID": "small:one"})
    check("and is no template any more", status == 404, status)
    new.stop()
    new.start()
    client = As(new)
    says("what stands on it works, also after a restart", client, client.create(templateID="installed"), "hello-world", "hello from a package\n")
    status, _ = client.api("DELETE", "/templates/installed")
    check("the snapshot can be deleted too", status == 204, status)
    new.stop()
    return new.state


def refusals(server, folder):
    with open(f"{folder}/bad", "wb") as file:
        file.write(os.urandom(4096))
    for what, arguments, text in (
            ("what is no tar", ["--name", "bad", f"{folder}/bad"], ""),
            ("a file that is not there", ["--name", "bad", f"{folder}/none"], "No such file"),
            ("a name that is none", ["--name", "A b/c d", f"{folder}/bad"], "")):
        ran = sandglass(server, "world", "import", "--state", server.state, *arguments)
        check(f"{what} is refused with one line", ran.returncode == 1 and text in ran.stderr and ran.stderr.count("\n") == 1,
              f"{ran.returncode} {ran.stderr}")
    left = [n for n in os.listdir(f"{server.state}/worlds") if n.startswith("new-")]
    check("and leaves nothing", left == [], left)


def main():
    program, folder = sys.argv[1:3]
    server = Server(program, f"{folder}/state")
    server.start()
    world = imported(server, folder)
    client = As(server)
    one = looks(client)
    other = installs(client, one)
    cells(client, other)
    begins_with_sudo(client)
    users(client)
    differences(server, client)
    check("sandboxes of one tenant and image notice locks and watches of each other", crossed(client) == (True, True))
    strict(server.program, folder)
    begins_in_usr(client)
    without_local(client)
    snapshots(client, one)
    branches(client, one, other)
    refusals(server, folder)
    builds(client)
    images(server, client, folder)
    ends_while_saved(server, client, folder)
    kept(server, folder, world)


if __name__ == "__main__":
    main()
