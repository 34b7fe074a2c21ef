"""Builds that fetch the images they start from, of a real registry and of one that lies: the steps behind image_builds.sh."""
import concurrent.futures
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request

import world_root
from pull import Real, free_port
from pull_hostile import Registry
from pull_hostile import Server as Web
from pull_image import MACHINE, OTHER, PASSWORD
from server_client import Client, Server, until
from worlds import As, add, check, sandglass, says


# ---- images

def layer_of(path, files):
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            add(tar, name, data)
    return path


def save(folder, name, layers, machine=MACHINE, **config):
    """An image, as `docker save` writes it."""
    sums = []
    for layer in layers:
        with open(layer, "rb") as file:
            sums.append("sha256:" + hashlib.file_digest(file, "sha256").hexdigest())
    whole = json.dumps({"architecture": machine, "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": sums}})
    with tarfile.open(f"{folder}/{name}.tar", "w") as tar:
        for i, layer in enumerate(layers):
            tar.add(layer, f"{i}/layer.tar")
        add(tar, "config.json", whole.encode())
        add(tar, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": [f"{name}:1"],
                                               "Layers": [f"{i}/layer.tar" for i in range(len(layers))]}]).encode())
    return f"{folder}/{name}.tar"


def push(archive, registry, name, *options):
    subprocess.run(["skopeo", "copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", *options,
                    f"docker-archive:{archive}", f"docker://{registry.host}/{name}"], check=True)


# ---- builds

def begin(client, name, image, steps=(), **more):
    _, made = client.api("POST", "/v3/templates", {"name": name})
    ids = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    asked = [{"type": kind, "args": args, "force": False} for kind, args in steps]
    status, told = client.api("POST", f"/v2{ids}", {"fromImage": image, "steps": asked, **more})
    return ids if status == 202 else told


def told_of(client, ids):
    return client.api("GET", f"{ids}/status?logsOffset=0")[1]


def lines(told):
    return [entry["message"] for entry in told["logEntries"]]


def ended(client, ids, patience_s=60):
    until(lambda: told_of(client, ids)["status"] in ("ready", "error"), patience_s, 0.1)
    return told_of(client, ids)


def build(client, name, image, steps=(), **more):
    return ended(client, begin(client, name, image, steps, **more))


def refused(what, client, image, *words, **more):
    """One line, that names the image and the cause, and nothing is left."""
    told = build(client, "refused", image, **more)
    said = told.get("reason", {}).get("message", "")
    check(what, told["status"] == "error" and image in said and all(word in said for word in words) and "\n" not in said
          and told["reason"]["step"] == "base" and PASSWORD not in str(told), told)


def new_ones(server):
    return [name for name in os.listdir(f"{server.state}/worlds") if name.startswith("new-")]


def nothing_left(what, server):
    check(what, until(lambda: not new_ones(server)), new_ones(server))


# ---- what works

def fetches(server, client, registry):
    image = f"{registry.host}/mine:1"
    told = build(client, "one", image, (("RUN", ["added > ~/added; echo $COLOUR >> ~/added; pwd >> ~/added"]),))
    check("an image that is not there is fetched", told["status"] == "ready", told)
    said = "\n".join(lines(told))
    check("the log says how it goes", f"[base] FROM {image}" in said and "[base] fetching layer 2 of 2" in said and
          "[base] unpacking layer 2 of 2" in said and "[base] fetched sha256:" in said and " MiB on disk" in said, said)
    sandbox = client.create(templateID="one")
    says("its variables and directory are those of the image", client, sandbox, "cat ~/added; echo $COLOUR; pwd",
         "added\ngreen\n/srv\ngreen\n/srv\n")
    says("and its files", client, sandbox, "ls /marker 2>/dev/null | wc -l; cat /etc/debian_version", "0\nof the test\n")
    told = build(client, "two", image)
    said = "\n".join(lines(told))
    check("the second time its registry is asked, and nothing is fetched", told["status"] == "ready" and "fetching" not in said, told)
    says("a template without a step is the image", client, client.create(templateID="two"), "added; id -un", "added\nuser\n")
    told = build(client, "one", image, (("RUN", ["added > ~/added; echo $COLOUR >> ~/added; pwd >> ~/added"]),))
    check("and the steps after it are those that were built before", "CACHED [builder 1/1]" in "\n".join(lines(told)), told)
    nothing_left("nothing is left of fetches", server)
    return image


def stored(server):
    """The files of all worlds, each once, and all their names."""
    found = [os.stat(f"{server.state}/worlds/{world}/{name}") for world in os.listdir(f"{server.state}/worlds")
             for name in os.listdir(f"{server.state}/worlds/{world}") if name.isdigit()]
    return {st.st_ino: st.st_size for st in found}, found


def shares(server, client, registry, folder, stranger):
    """Another image with the same lowest layer, for another tenant."""
    files, names = stored(server)
    layers = [f"{folder}/root.tar", layer_of(f"{folder}/third-layer.tar", {"third": b"third\n"})]
    push(save(folder, "third", layers), registry, "third:1")
    told = build(stranger, "third", f"{registry.host}/third:1")
    check("another tenant's image is fetched for it", told["status"] == "ready" and "fetching layer 1" in "\n".join(lines(told)), told)
    more, all_names = stored(server)
    check("and the contents that both have are on disk once", len(all_names) == len(names) + 2 and
          sum(more.values()) - sum(files.values()) == 4096, (files, more))
    sandbox = stranger.create(templateID="third")
    says("while each sees its own files", stranger, sandbox, "cat /third; ls /usr/bin/added 2>/dev/null | wc -l", "third\n0\n")
    stranger.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    says("and the other one's go on", client, client.create(templateID="two"), "added", "added\n")


def listed(server):
    ran = sandglass(server, "world", "ls", "--state", server.state, "--json")
    return {world["name"]: world for world in json.loads(ran.stdout)}


def manages(server, client, registry, folder):
    """ls, du, rm and gc, beside a server that runs."""
    image, plain = f"{registry.host}/mine:1", f"{registry.host}/plain:1"
    push(save(folder, "plain", [layer_of(f"{folder}/plain-layer.tar", {"f": b"f"})]), registry, "plain:1")
    sandglass(server, "world", "import", "--state", server.state, "--name", "by-hand", f"{folder}/root.tar")
    worlds = listed(server)
    check("ls lists what was fetched and what was imported", worlds[image]["fetched"] and worlds[image]["layers"] == 2 and
          worlds[image]["templates"] == "two" and worlds[image]["standing"] > 0 and worlds["by-hand:default"]["tenant"] == "default", worlds)
    check("and what would go with a world", worlds["by-hand:default"]["ownBytes"] < worlds["by-hand:default"]["bytes"] // 2, worlds)
    ran = sandglass(server, "world", "ls", "--state", server.state)
    table = ran.stdout.splitlines()
    check("its table lines up", len(table) == len(worlds) + 1 and len({line.index("MiB") for line in table[1:] if "root" not in line}) <= 2 and
          table[0].index("NAME") == 22 and all(line[20:22] == "  " for line in table), ran.stdout)
    ran = sandglass(server, "world", "du", "--state", server.state, "--json")
    check("du adds up by tenant", {s["tenant"] for s in json.loads(ran.stdout)} == {"default", "stranger"}, ran.stdout)
    for which, words in ((image, "in use by templates: two"), ("nothing", "there is no world 'nothing'")):
        ran = sandglass(server, "world", "rm", "--state", server.state, which)
        check(f"rm refuses {which.split('/')[-1]}", ran.returncode == 1 and words in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr)
    sandbox = client.create(templateID="by-hand")
    client.api("POST", "/templates/tags", {"target": "by-hand", "tags": ["kept:v1"]})
    ran = sandglass(server, "world", "rm", "--state", server.state, "by-hand")
    check("rm refuses one that has become a template under another name", ran.returncode == 1 and "in use by templates: kept" in ran.stderr, ran.stderr)
    client.api("DELETE", "/templates/kept")
    ran = sandglass(server, "world", "rm", "--state", server.state, "by-hand")
    check("rm removes one that nothing stands on", ran.returncode == 0, ran.stderr)
    world = ran.stdout.strip()
    gone = f"gone-{world}"
    check("and its template with it", client.api("POST", "/v2/sandboxes", {"templateID": "by-hand"})[0] == 404)
    until(lambda: gone in os.listdir(f"{server.state}/worlds"))
    says("a sandbox that runs on it runs on", client, sandbox, "cat /marker", "a file of the world\n")
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    check("and its files go when that has ended", until(lambda: not {world, gone} & set(os.listdir(f"{server.state}/worlds"))),
          os.listdir(f"{server.state}/worlds"))
    told = build(client, "plain", plain)
    client.api("DELETE", "/templates/plain")
    check("an image is kept for the next build", told["status"] == "ready" and plain in listed(server), told)
    sandglass(server, "world", "gc", "--state", server.state)
    check("gc leaves it", plain in listed(server))
    ran = sandglass(server, "world", "gc", "--all", "--state", server.state)
    check("gc --all removes it, and not what something stands on", ran.returncode == 0 and until(lambda: plain not in listed(server)) and
          image in listed(server), ran.stderr)


def moves(client, registry, folder):
    """A tag that moves is noticed."""
    push(save(folder, "other", [f"{folder}/root.tar", layer_of(f"{folder}/other-layer.tar", {"moved": b"moved\n"})]), registry, "mine:1")
    told = build(client, "moved", f"{registry.host}/mine:1")
    check("a tag that has moved is fetched anew", told["status"] == "ready" and "fetching" in "\n".join(lines(told)), told)
    says("and leads to the new image", client, client.create(templateID="moved"), "cat /moved", "moved\n")


def configured(server, client, registry, folder, name, files, steps=(), **config):
    """A build from the image with these files over the small Debian; what the log says, and a check of what a sandbox answers as the template's own user."""
    push(save(folder, name, [f"{folder}/root.tar", layer_of(f"{folder}/{name}-layer.tar", files)], **config), registry, f"{name}:1")
    told = build(client, name, f"{registry.host}/{name}:1", steps)
    check(f"an image with a config of its own is used: {name}", told["status"] == "ready", told)
    sandbox = client.create(templateID=name)

    def answers(what, command, output):
        got = Client(server, 60).run(sandbox, command)
        check(what, got == (0, output), got)

    return lines(told), answers


def config(server, client, registry, folder):
    """User and directory that an image's config names."""
    passwd = {"etc/passwd": b"root:x:0:0:root:/root:/bin/bash\nsvc:x:107:107::/srv:/bin/sh"}  # no `user`, and no end of a line
    said, answers = configured(server, client, registry, folder, "service", passwd, User="svc:root", WorkingDir="/var/none/deep")
    answers("the user of an image that names one, in a directory that it has not", "id -un; pwd; stat -c %U:%G . ..",
            "svc\n/var/none/deep\nsvc:UNKNOWN\nsvc:UNKNOWN\n")
    check("which the log tells", "CACHED [base] USER svc" in said and "[base] WORKDIR /var/none/deep" in said, said)
    again = lines(build(client, "service", f"{registry.host}/service:1"))
    check("and the second time both are CACHED", "CACHED [base] USER svc" in again and "CACHED [base] WORKDIR /var/none/deep" in again, again)
    _, answers = configured(server, client, registry, folder, "number", {}, User="4711:4712", WorkingDir="/etc")
    answers("an id is used as it is", "id -u; id -g; pwd", "4711\n0\n/etc\n")
    for n, user in enumerate(("ghost", "$USER")):
        said, answers = configured(server, client, registry, folder, f"ghost{n}", {}, User=user)
        answers(f"a user that is not there ({user}) is left out", "id -un", "user\n")
        check("and the log says so", f"[base] the image has no user '{user}' in its /etc/passwd: it is 'user' in its place" in said, said)
    _, answers = configured(server, client, registry, folder, "new-user", passwd,
                            (("USER", ["app"]), ("RUN", ["id -un > ~/who; id -u >> ~/who; pwd >> ~/who"])))
    answers("a user that a step names is made, and is not `user`", "cat ~/who; id -u", "app\n1001\n/home/app\n1001\n")
    by_hand = (("USER", ["root"]), ("RUN", ["rm /usr/sbin/useradd /usr/sbin/groupadd; echo staff:x:2000: >> /etc/group"]), ("USER", ["app"]),
               ("RUN", ["id -un > ~/who; stat -c %U:%G ~ >> ~/who; grep ^svc: /etc/passwd >> ~/who"]), ("USER", ["staff"]), ("RUN", ["id -gn >> who"]))
    _, answers = configured(server, client, registry, folder, "bare", passwd, by_hand)
    answers("also where there is no useradd", "cat /home/app/who who; id -un",
            "app\napp:app\nsvc:x:107:107::/srv:/bin/sh\nstaff\nstaff\n")
    again = lines(build(client, "bare", f"{registry.host}/bare:1", by_hand))
    check("and once", sum(line.startswith("CACHED") for line in again) == len(by_hand), again)


def together(client, registry):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        got = list(pool.map(lambda name: build(client, name, f"{registry.host}/shared:1"), ("first", "second")))
    said = ["\n".join(lines(told)) for told in got]
    check("two builds that want one image at once fetch it once", [told["status"] for told in got] == ["ready"] * 2 and
          sum("waiting for a build that fetches it already" in text for text in said) == 1, got)


def private(server, client, registry, other_tenant):
    image = f"{registry.host}/secret:1"
    refused("a private image without credentials", client, image, "user and a password")
    refused("or with wrong ones", client, image, "these credentials",
            fromImageRegistry={"type": "registry", "username": "user", "password": "wrong"})
    right = {"type": "registry", "username": "user", "password": PASSWORD}
    told = build(client, "private", image, fromImageRegistry=right)
    check("is fetched with the right ones", told["status"] == "ready", told)
    refused("and stays closed to a build without", client, image, "user and a password")
    refused("and to another tenant", other_tenant, image, "user and a password")
    told = build(client, "private", image, fromImageRegistry={"type": "sesame"})
    check("credentials of an unknown kind are refused", told["status"] == "error" and "registry, identity, aws or gcp" in told["reason"]["message"], told)
    with open(f"{server.state}/front/server.db", "rb") as file:
        check("no password is in the database", PASSWORD.encode() not in file.read())


# ---- what must not be

def policies(server, client, inside):
    refused("a registry inside that the operator does not name", client, f"{inside.host}/mine:1", "loopback")
    refused("metadata of a cloud", client, "169.254.169.254/mine:1", "cloud metadata")
    refused("an address of this machine", client, "0.0.0.0:5000/mine:1", "internal address")
    refused("what is no name", client, "Not An Image", "image")


def lies(server, client, web):
    host = f"localhost:{web.port}"
    for repository, words in (("absent", "MANIFEST_UNKNOWN"), ("inside", "https://169.254.169.254"), ("changed", "digest"), ("short", "bytes"),
                              ("long", "bytes"), ("html", "manifest"), ("schema1", "schema"), ("always-busy", "503"),
                              ("name-inside", "localhost")):
        refused(f"a registry that lies: {repository}", client, f"{host}/{repository}:latest", words)
    nothing_left("and nothing is left of that", server)


def zeros(folder, name, size):
    with open(f"{folder}/{name}", "wb") as file:
        file.truncate(size)
    with tarfile.open(f"{folder}/{name}.tar", "w") as tar:
        tar.add(f"{folder}/{name}", name)
    return f"{folder}/{name}.tar"


def bombs(program, registry, folder):
    """Images that are small, and too large when they are unpacked."""
    server = Server(program, f"{folder}/bombs", "--build-registries", f"http://{registry.host}", "--build-image-max", "100M")
    server.start()
    client = As(server)
    push(save(folder, "bomb", [zeros(folder, "all", 101 << 20)]), registry, "bomb:1")
    refused("an image that unpacks to more than build_image_max", client, f"{registry.host}/bomb:1", "more than")
    halves = [zeros(folder, "one", 60 << 20), zeros(folder, "two", 60 << 20)]
    push(save(folder, "halves", halves), registry, "halves:1")
    refused("one of which no layer does, but two together", client, f"{registry.host}/halves:1", "more than")
    nothing_left("and nothing is left of them", server)
    push(save(folder, "half", halves[:1]), registry, "half:1")
    told = build(client, "half", f"{registry.host}/half:1")
    check("and one of them alone is an image", told["status"] == "ready", told)
    push(save(folder, "foreign", [layer_of(f"{folder}/f.tar", {"f": b"f"})], machine=OTHER), registry, "foreign:1")
    refused("an image for other machines", client, f"{registry.host}/foreign:1", MACHINE)
    up = layer_of(f"{folder}/leads.tar", {"../up": b"up"})
    push(save(folder, "up", [up]), registry, "up:1")
    refused("an image with a name that leads up", client, f"{registry.host}/up:1", "..")
    server.stop()


def processes(server, name):
    """Those of this server that have the name."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if name in file.read() and parent_of(int(pid), server.process.pid):
                    found.append(int(pid))
        except OSError:
            continue
    return found


def parent_of(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            pid = int(file.read().rsplit(")", 1)[1].split()[1])
    return False


def imports(server, client, archive, stranger):
    """Images that come over HTTP, as `docker save IMAGE | sandglass template import NAME -` sends them."""
    url = f"http://127.0.0.1:{server.port}"
    env = {"PATH": os.environ["PATH"], "E2B_API_KEY": client.server.key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}

    def run(*arguments, stdin=subprocess.DEVNULL):
        return sandglass(server, "template", "import", *arguments, env=env, stdin=stdin)

    with subprocess.Popen(["cat", archive], stdout=subprocess.PIPE) as pipe:
        ran = run("boxed", "-", "--tag", "v1", stdin=pipe.stdout)
    check("an archive of docker save becomes a template", ran.returncode == 0 and ran.stdout == "boxed:v1\n", f"{ran.stdout}{ran.stderr}")
    says("with variables, directory and files of the image", client, client.create(templateID="boxed:v1"),
         "added; echo $COLOUR; pwd", "added\ngreen\n/srv\n")
    check("and is told how far it is", "transfer the image" in ran.stderr and "unpacking layer 2 of 2" in ran.stderr, ran.stderr)
    ran = run("again", archive, "--start", "sleep 1000", "--ready", "true")
    check("the same archive is not unpacked twice", ran.returncode == 0 and ran.stdout == "again\n" and "unpacking" not in ran.stderr,
          f"{ran.stdout}{ran.stderr}")
    sandbox = client.create(templateID="again")
    says("a start command is the template's", client, sandbox, "pgrep -x sleep >/dev/null && echo runs", "runs\n")
    for what, words, file in (("what is no archive", "tar", "/etc/passwd"), ("an empty file", "", "/dev/null"),
                              ("a directory", "is a directory", "/etc"), ("a file that is not there", "cannot read", "/nowhere")):
        ran = run("bad", file)
        check(f"{what} is refused in one line", ran.returncode == 1 and words in ran.stderr and
              ran.stderr.splitlines()[-1].startswith("sandglass: "), ran.stderr)
    with subprocess.Popen(["head", "-c", "100000", archive], stdout=subprocess.PIPE) as pipe:
        ran = run("cut", stdin=pipe.stdout)
    check("an archive that is cut is refused, with the reason", ran.returncode == 1 and "cannot be used" in ran.stderr, ran.stderr)
    for name in ("boxed", "again"):
        client.api("DELETE", f"/templates/{name}")
    client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")
    digest = "upload:" + "0" * 64
    refused("an archive that nobody has uploaded", client, digest, "upload it again")
    made = stranger.api("POST", "/v3/templates", {"name": "theirs"})[1]
    told = stranger.api("GET", f"/templates/{made['templateID']}/files/{'0' * 64}")[1]
    check("an upload is asked for by its tenant", told["present"] is False and told["url"], told)
    with open(archive, "rb") as file:
        request = urllib.request.Request(told["url"], file.read(), method="PUT")
    urllib.request.urlopen(request, timeout=60).close()
    refused("and is found by nobody else", client, digest, "upload it again")
    nothing_left("nothing is left of images that were uploaded", server)


def cancels(server, client, web):
    image = f"localhost:{web.port}/hang:latest"
    ids = begin(client, "hangs", image)
    until(lambda: processes(server, b"sandglass-pull"))
    nobody = [os.stat(f"/proc/{pid}").st_uid for pid in processes(server, b"sandglass-pull") + processes(server, b"--world-builder")]
    check("what fetches is nobody on the host", len(nobody) >= 2 and all(uid >= 100000 for uid in nobody), nobody)
    status, told = client.api("DELETE", ids)
    check("a build that fetches can be cancelled", status == 204 and told_of(client, ids)["status"] == "error", told)
    left = until(lambda: not processes(server, b"sandglass-pull") and not processes(server, b"--world-builder"))
    check("and its processes end", left, processes(server, b"--world-builder"))
    nothing_left("with all that they had made", server)


def dies(server, client, web):
    """The server is killed in the middle of a layer."""
    begin(client, "killed", f"localhost:{web.port}/slow:latest")
    until(lambda: new_ones(server) and os.path.isdir(f"{server.state}/worlds/{new_ones(server)[0]}/layers") and
          os.listdir(f"{server.state}/worlds/{new_ones(server)[0]}/layers"))
    there = new_ones(server)
    os.mkdir(f"{server.state}/worlds/new-00000000000000000000")  # as if a machine had lost its power
    server.kill()
    server.start()
    check("a server that is killed while it fetches leaves nothing after its next start", there and until(lambda: not new_ones(server)),
          new_ones(server))
    check("and can fetch", build(client, "after", f"localhost:{web.port}/busy:latest")["status"] in ("ready", "error"))


def offline(client, image, registry):
    registry.end()
    told = build(client, "offline", image)
    check("without the registry, what was fetched is used, and the log says so", told["status"] == "ready" and
          any("going on with what was fetched on" in line for line in lines(told)), told)


def full(server):
    """A tenant whose templates take up all that they may, and one that has none yet."""
    server.options += ("--tenant-build-size", "1M")
    server.start()
    told = build(As(server), "more", "127.0.0.1:1/none:1")
    check("a tenant whose templates are too large cannot build more", told["status"] == "error" and
          "tenant_build_size, 1 MiB" in told["reason"]["message"], told)
    server.stop()


def deadline(server, web):
    server.options += ("--build-timeout", "3s")
    server.start()
    told = build(As(server), "late", f"localhost:{web.port}/hang:latest")
    check("a build's deadline holds for its image", told["status"] == "error" and "build_timeout" in told["reason"]["message"], told)
    nothing_left("and its files go", server)
    server.stop()


def no_room(program, folder, registry):
    """The disk is full before the image is unpacked."""
    os.mkdir(f"{folder}/small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=70m", "small", f"{folder}/small"], check=True)
    server = Server(program, f"{folder}/small/state", "--build-registries", f"http://{registry.host}")
    try:
        server.start()
        client = As(server)
        refused("a disk that is full fails the build with the reason", client, f"{registry.host}/mine:1", "No space left on device")
        nothing_left("and nothing is left of the image", server)
        check("the server goes on", client.create()["sandboxID"])
        server.stop()
    finally:
        subprocess.run(["umount", "-l", f"{folder}/small"], check=True)


def tenant(server):
    ran = sandglass(server, "key", "create", "--state", server.state, "--tenant", "stranger", "--json")
    other = Server(server.program, server.state)
    other.port, other.key = server.port, json.loads(ran.stdout)["key"]
    return As(other)


def main():
    program, folder = sys.argv[1:3]
    world_root.make(f"{folder}/root.tar")
    layers = [f"{folder}/root.tar", f"{folder}/upper.tar"]
    with tarfile.open(layers[1], "w") as tar:
        add(tar, ".wh.marker")
        add(tar, "usr/bin/added", b"#!/bin/sh\necho added\n", mode=0o755)
        add(tar, "srv/", type=tarfile.DIRTYPE, mode=0o777)
    archive = save(folder, "mine", layers, Env=["COLOUR=green"], WorkingDir="/srv", User="user:user", Cmd=["false"])
    registry, closed, inside = Real(folder, free_port()), Real(folder, free_port(), "user"), Real(folder, free_port())
    web = Web(Registry)
    for name in ("mine:1", "shared:1"):
        push(archive, registry, name)
    push(archive, inside, "mine:1")
    push(archive, closed, "secret:1", f"--dest-creds=user:{PASSWORD}")
    allowed = ",".join(f"http://{host}" for host in (registry.host, closed.host, f"localhost:{web.port}"))
    server = Server(program, f"{folder}/state", "--build-registries", f"*, {allowed}", "--build-image-max", "1G")
    try:
        server.start()
        client = As(server)
        image = fetches(server, client, registry)
        config(server, client, registry, folder)
        together(client, registry)
        stranger = tenant(server)
        private(server, client, closed, stranger)
        shares(server, client, registry, folder, stranger)
        manages(server, client, registry, folder)
        imports(server, client, archive, stranger)
        no_room(program, folder, registry)
        bombs(program, registry, folder)
        policies(server, client, inside)
        lies(server, client, web)
        cancels(server, client, web)
        moves(client, registry, folder)
        dies(server, client, web)
        client = As(server)
        offline(client, image, registry)
        server.stop()
        deadline(server, web)
        full(server)
    finally:
        for one in (registry, closed, inside):
            one.child.kill()


if __name__ == "__main__":
    main()
