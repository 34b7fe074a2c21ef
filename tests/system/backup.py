"""Backup and restore of a real server: the steps behind backup.sh."""
import glob
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import threading

from server_client import Client, Server, until

CANNOT = 78  # trying again does not mend it
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {str(detail)[:2000]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def sandglass(server, verb, *arguments):
    return subprocess.run([server.program, verb, "--state", server.state, *arguments], text=True, capture_output=True,
                          check=False, timeout=120)


def refused(what, ran, status, text):
    check(what, ran.returncode == status and text in ran.stderr and ran.stderr.count("\n") == 1,
          f"{ran.returncode} {ran.stderr}")


def snapshot(client, sandbox, name):
    status, made = client.api("POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {"name": name})
    if status not in (200, 201):
        raise RuntimeError(f"snapshot: {status} {made}")
    return made


FILES = ("mkdir -p deep/er && echo content > deep/er/file && ln -s er/file deep/link && ln deep/er/file deep/hard"
         " && dd if=/dev/zero of=sparse bs=1M count=0 seek=40 2>/dev/null && mkfifo pipe && chmod 640 deep/er/file"
         " && setfattr -n user.colour -v green deep/er/file 2>/dev/null; rm -f /home/user/.bashrc; true")
VOLUME = (FILES.replace("; true", "; rm -f pipe; chmod 1770 deep; ln -s /etc/passwd out; echo end >huge; ln huge same;"
                        " python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; true"))
CHURN = ("while :; do for i in $(seq 50); do mkdir -p d$i && date >d$i/f && ln -f d$i/f d$i/g && ln -sf f d$i/l; mv -T d$i e$i;"
         " head -c 100000 /dev/urandom >>grows; done; rm -rf d* e* grows; done")
VOLUME_LOOK = ("cd /mnt/data && find . -mindepth 1 -not -name socket -not -path './moving*' -printf '%p %y %m %U %G %l\\n' | sort;"
               " cat deep/er/file; stat -c '%h %s' same huge sparse deep/er/file; head -c 4 huge; getfattr -d deep/er/file 2>/dev/null")
LOOK = ("cat deep/er/file deep/link; stat -c '%a %U %h' deep/er/file; stat -c %s sparse; test -p pipe && echo pipe;"
        " test -e /home/user/.bashrc || echo whiteout")


def fill(server):
    """A tenant with everything that a backup is for."""
    client = Client(server)
    sandbox = client.create()
    client.run(sandbox, FILES)
    before = client.run(sandbox, LOOK)
    snapshot(client, sandbox, "first")
    client.run(sandbox, "echo more > second")
    snapshot(client, sandbox, "second")
    client.api("POST", "/secrets", {"name": "token", "value": "hunter2"})
    client.api("POST", "/volumes", {"name": "data"})
    client.api("POST", "/volumes", {"name": "empty"})
    volume = client.create(volumeMounts=[{"name": "data", "path": "/mnt/data"}])
    client.run(volume, f"cd /mnt/data && {VOLUME}")
    # Nobody could read all of this, and nobody need.
    os.truncate(glob.glob(f"{server.state}/volumes/*/*/huge")[0], 10 << 40)
    talk = client.api("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "main", "template": "base"})[1]
    until(lambda: server.is_written(talk["sandbox"]["sandboxID"]))
    server.volumes = {v["name"]: v for v in (client.api("GET", f"/volumes/{v['volumeID']}")[1] for v in client.api("GET", "/volumes")[1])}
    server.volume_look = client.run(volume, VOLUME_LOOK)
    server.writer = volume
    return client, before, talk["context"]["id"]


def backup_runs(server, folder):
    client, before, context = fill(server)
    writing = threading.Event()
    writing.set()

    def busy():
        while writing.is_set():
            sandbox = client.create()
            client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")

    # A program that makes, changes, moves and removes files of the volume all the time.
    client.run(server.writer, f"cd /mnt/data && mkdir moving && cd moving && ({CHURN}) >/dev/null 2>&1 & sleep 0.1")
    thread = threading.Thread(target=busy)
    thread.start()
    ran = sandglass(server, "backup", "--json", f"{folder}/one")
    writing.clear()
    thread.join()
    made = json.loads(ran.stdout) if ran.returncode == 0 else {}
    check("a server that works is backed up", made.get("snapshots") == 2 and made.get("contexts") == 1
          and made.get("secrets") == 1 and made.get("volumes") == 2 and made.get("leftOut") == []
          and made.get("volumesLeftOut") == 0, f"{ran.stdout} {ran.stderr}")
    mode = os.stat(f"{folder}/one").st_mode & 0o777
    check("nobody else can read it", mode == 0o700, oct(mode))
    left = [n for n in os.listdir(f"{server.state}/front") if n.startswith("backup")] + \
        [n for n in os.listdir(folder) if n.startswith(".backup")]
    check("nothing else is left behind", left == [], left)
    refused("a backup overwrites nothing", sandglass(server, "backup", f"{folder}/one"), 1, "already exists")
    refused("nothing is restored under a server that runs", sandglass(server, "restore", "--replace", f"{folder}/one"),
            1, "a server runs in")
    ran = sandglass(server, "restore", "--check", f"{folder}/one")
    check("it can be checked", ran.returncode == 0 and "is whole" in ran.stdout, f"{ran.stdout} {ran.stderr}")
    return client, before, context


def works(server, before, context):
    client = Client(server)
    status, listed = client.api("GET", "/snapshots")
    check("the key works, and finds the snapshots", status == 200 and len(listed) == 2, listed)
    sandbox = client.create(templateID="first")
    check("files are as they were: links, holes, modes, what was deleted", client.run(sandbox, LOOK) == before,
          f"{before} {client.run(sandbox, LOOK)}")
    second = client.create(templateID="second")
    check("of each snapshot", client.run(second, "cat second deep/er/file") == (0, "more\ncontent\n"))
    status, row = client.api("GET", f"/v1/contexts/{context}")
    check("contexts are there, without a sandbox", status == 200 and not row["sandboxId"], row)
    events = until(lambda: [e for e in client.api("GET", "/v1/events?limit=1000&types=sandbox.ended")[1]["events"]
                            if e.get("reason") == "restored"])
    check("it is told that their sandboxes were not in the backup", any(e.get("contextId") == context for e in events),
          events)
    check("numbers of events are not given out again", events[0]["id"] > 1000000000, events[0])
    status, made = client.api("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "main"})
    check("and they get another", status == 201 and made["replaced"] and made["context"]["id"] == context, made)
    status, secrets = client.api("GET", "/secrets")
    check("secrets are there", status == 200 and [s["name"] for s in secrets] == ["token"], secrets)
    found = {v["name"]: v for v in (client.api("GET", f"/volumes/{v['volumeID']}")[1] for v in client.api("GET", "/volumes")[1])}
    same = [all(found.get(name, {}).get(key) == one[key] for key in ("volumeID", "token", "maxBytes"))
            for name, one in server.volumes.items()]
    check("volumes have their ids, names, tokens and limits", same == [True, True] and len(found) == 2, found)
    sandbox = client.create(volumeMounts=[{"name": "data", "path": "/mnt/data"}])
    said = client.run(sandbox, VOLUME_LOOK)
    check("and files as they were: links, holes, modes, owners", said == server.volume_look, f"{server.volume_look} {said}")
    check("but no sockets", client.run(sandbox, "test -e /mnt/data/socket")[0] == 1)
    check("and can be written to", client.run(sandbox, "cd /mnt/data && echo x >new && rm new")[0] == 0)
    ran = subprocess.run(
        [server.program, "audit", "verify", "--state", server.state], text=True, capture_output=True, check=False, timeout=60)
    check("the record is whole", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")


def restores(old, folder, before, context):
    check("the record of the tenant is in it", glob.glob(f"{folder}/one/guard/audit/*/audit-*.jsonl"),
          os.listdir(f"{folder}/one/guard/audit"))
    new = Server(old.program, f"{folder}/new")
    new.key, new.volumes, new.volume_look = old.key, old.volumes, old.volume_look
    ran = sandglass(new, "restore", "--json", f"{folder}/one")
    check("it is restored where nothing was", ran.returncode == 0 and "before" not in json.loads(ran.stdout),
          f"{ran.stdout} {ran.stderr}")
    new.start()
    works(new, before, context)
    refused("a second server does not share it", sandglass(new, "restore", f"{folder}/one"), 1, "a server runs in")
    check("it ends well", new.stop() == 0)
    refused("a database is not overwritten", sandglass(new, "restore", f"{folder}/one"), 1, "give --replace")
    ran = sandglass(new, "restore", "--replace", "--json", f"{folder}/one")
    aside = json.loads(ran.stdout)["before"] if ran.returncode == 0 else ""
    check("but moved aside if that is said", os.path.exists(f"{aside}/front/server.db"), f"{ran.stdout} {ran.stderr}")
    check("with the volumes", len(glob.glob(f"{aside}/volumes/*/*")) == 2 and len(glob.glob(f"{new.state}/volumes/*/*")) == 2)
    return new


def without_volumes(server, folder):
    """A backup that leaves them out says what it lacks, when it is made and when it is looked at."""
    lacks = "a server that is restored from it lacks 2 of them"
    ran = sandglass(server, "backup", "--no-volumes", f"{folder}/lean")
    check("a backup may leave volumes out, and says so", ran.returncode == 0 and lacks in ran.stderr
          and "0 volumes" in ran.stdout and os.listdir(f"{folder}/lean/volumes") == [], f"{ran.stdout} {ran.stderr}")
    ran = sandglass(server, "restore", "--check", f"{folder}/lean")
    check("so does the check of it", ran.returncode == 0 and lacks in ran.stderr, f"{ran.stdout} {ran.stderr}")
    lean = Server(server.program, f"{folder}/lean-state")
    lean.key = server.key
    ran = sandglass(lean, "restore", f"{folder}/lean")
    check("it is restored", ran.returncode == 0 and lacks in ran.stderr, f"{ran.stdout} {ran.stderr}")
    lean.start()
    client = Client(lean)
    check("without volumes, and their names are free", client.api("GET", "/volumes") == (200, [])
          and client.api("POST", "/volumes", {"name": "data"})[0] == 201)
    check("it ends", lean.stop() == 0)


def place_of_its_own(server, folder):
    """Volumes on a file system of their own, as volumes.md advises: a restore cannot put others there, and says so at once."""
    state = f"{folder}/mounted"
    os.makedirs(f"{state}/volumes")
    ran = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$1/volumes" && exec "$2" restore --state "$1" "$3"', "sh",
                          state, server.program, f"{folder}/one"], text=True, capture_output=True, check=False, timeout=60)
    refused("volumes that are a file system of their own are not replaced", ran, 1, "is a file system of its own")
    check("and nothing was copied", sorted(os.listdir(state)) == ["lock", "volumes"], os.listdir(state))


def one_volume_cannot(server, folder):
    """One tenant's files do not prevent the backup of all others."""
    place = next(p for p in glob.glob(f"{server.state}/volumes/*/*") if not os.path.exists(f"{p}/deep"))
    here = os.open(place, os.O_RDONLY)
    for _ in range(2200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    ran = sandglass(server, "backup", "--json", f"{folder}/partial")
    made = json.loads(ran.stdout) if ran.returncode == 0 else {}
    check("a volume that cannot be copied is left out and named", made.get("volumes") == 1
          and [list(one) for one in made["leftOut"]] == [["volume", "reason"]]
          and f"volume {os.path.basename(place)} is not in the backup" in ran.stderr, f"{ran.stdout} {ran.stderr}")
    subprocess.run(["rm", "-rf", f"{place}/d"], check=True)


def older(server, folder):
    """A backup of the first format: its checksums cover zeros as they are, and it has no volumes."""
    old = f"{folder}/old"
    subprocess.run(["cp", "-a", f"{folder}/lean", old], check=True)
    os.rmdir(f"{old}/volumes")
    with open(f"{old}/backup.json", encoding="utf-8") as file:
        manifest = json.load(file)
    manifest["format"] = 1
    del manifest["volumesLeftOut"], manifest["volumes"]
    for part in manifest["parts"]:
        part["sha256"] = first_sum(f"{old}/{part['path']}")
    with open(f"{old}/backup.json", "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    ran = sandglass(server, "restore", "--check", old)
    check("a backup of an older version is whole", ran.returncode == 0 and "is whole" in ran.stdout, f"{ran.stdout} {ran.stderr}")


def first_sum(top):
    """What backup/tree.h calls the checksum, as the first format had it."""
    total = hashlib.sha256()

    def number(n):
        total.update(f"{n};".encode())

    def text(data):
        number(len(data))
        total.update(data)

    def looks(st):
        for n in (st.st_mode, st.st_uid, st.st_gid):
            number(n)

    def attributes(path):
        kept = sorted(n for n in os.listxattr(path, follow_symlinks=False) if n.startswith(("user.", "trusted.overlay.")))
        number(len(kept))
        for name in kept:
            text(name.encode())
            text(os.getxattr(path, name, follow_symlinks=False))

    def directory(path):
        names = sorted(os.listdir(os.fsencode(path)))
        number(len(names))
        for name in names:
            one = os.path.join(os.fsencode(path), name)
            st = os.lstat(one)
            text(name)
            looks(st)
            if stat.S_ISREG(st.st_mode):
                attributes(one)
                number(st.st_size)
                with open(one, "rb") as file:
                    total.update(hashlib.file_digest(file, "sha256").digest())
            elif stat.S_ISDIR(st.st_mode):
                attributes(one)
                directory(one)
            elif stat.S_ISLNK(st.st_mode):
                text(os.readlink(one))
    looks(os.lstat(top))
    attributes(top)
    directory(top)
    return total.hexdigest()


def damaged(server, folder):
    def copy(name):
        subprocess.run(["cp", "-a", f"{folder}/one", f"{folder}/{name}"], check=True)
        return f"{folder}/{name}"

    broken = copy("broken")
    layer = os.listdir(f"{broken}/layers")[0]
    with open(f"{broken}/layers/{layer}/home/user/deep/er/file", "a", encoding="utf-8") as file:
        file.write("x")
    state = f"{folder}/untouched"
    ran = subprocess.run([server.program, "restore", "--state", state, broken], text=True, capture_output=True, check=False,
                         timeout=60)
    refused("a changed file is found", ran, 1, "does not match its checksum")
    check("and nothing of it is left in the state directory", sorted(os.listdir(state)) == ["lock"], os.listdir(state))
    later = copy("later")
    with open(f"{later}/backup.json", encoding="utf-8") as file:
        manifest = json.load(file)
    manifest["schema"] = 1000
    with open(f"{later}/backup.json", "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    refused("a backup of a later version is refused", sandglass(server, "restore", "--check", later), 1, "is newer than this one")
    missing = copy("missing")
    os.unlink(f"{missing}/guard/seal.key")
    refused("a missing key is found", sandglass(server, "restore", "--check", missing), 1, "does not match its checksum")


def database_gone(server, folder, before, context):
    shutil.rmtree(f"{server.state}/front")
    refused("a server whose database is gone does not make another", serve(server), CANNOT, "is missing")
    refused("nor does who makes a key", subprocess.run(
        [server.program, "key", "list", "--state", server.state], text=True, capture_output=True, check=False, timeout=60),
        1, "there is no server in")
    os.mkdir(f"{server.state}/front", 0o700)
    refused("nor in an empty directory", subprocess.run(
        [server.program, "key", "list", "--state", server.state], text=True, capture_output=True, check=False, timeout=60),
        1, "is missing")
    with open(f"{server.state}/front/server.db", "w", encoding="utf-8"):
        pass
    refused("an empty one is none", serve(server), CANNOT, "but there are snapshots")
    os.unlink(f"{server.state}/used")
    refused("snapshots alone tell as much", serve(server), CANNOT, "sandglass restore")
    ran = sandglass(server, "restore", f"{folder}/one")
    check("a backup brings it back", ran.returncode == 0, ran.stderr)
    server.start()
    works(server, before, context)
    check("it ends", server.stop() == 0)


def begin_anew(server):
    shutil.rmtree(f"{server.state}/front")
    layers = sorted(os.listdir(f"{server.state}/layers"))
    server.options = ("--new",)
    server.key = None
    server.start()
    aside = [n for n in os.listdir(server.state) if n.startswith("before-")
             and os.path.exists(f"{server.state}/{n}/layers")
             and sorted(os.listdir(f"{server.state}/{n}/layers")) == layers]
    check("--new begins anew, and throws nothing away", server.key and aside, os.listdir(server.state))
    status, listed = Client(server).api("GET", "/snapshots")
    check("with no snapshots", (status, listed) == (200, []), listed)
    check("it ends", server.stop() == 0)
    server.start()
    check("and --new leaves a database alone that is there", Client(server).api("GET", "/snapshots")[0] == 200)
    check("it ends again", server.stop() == 0)


def serve(server):
    return subprocess.run([server.program, "serve", "--listen", "127.0.0.1:0", "--state", server.state], text=True,
                          capture_output=True, check=False, timeout=60)


def main():
    program, folder = sys.argv[1:]
    server = Server(program, f"{folder}/state")
    server.start()
    _, before, context = backup_runs(server, folder)
    check("the server ends", server.stop() == 0)
    without_volumes(server, folder)
    one_volume_cannot(server, folder)
    place_of_its_own(server, folder)
    older(server, folder)
    new = restores(server, folder, before, context)
    damaged(server, folder)
    database_gone(new, folder, before, context)
    begin_anew(new)
    print(f"# steps {number}")


main()
