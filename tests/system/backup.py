"""Backup and restore of a real server: the steps behind backup.sh."""
import glob
import json
import os
import shutil
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
    talk = client.api("PUT", "/v1/contexts", {"conversationId": "c", "pathId": "main", "template": "base"})[1]
    until(lambda: server.is_written(talk["sandbox"]["sandboxID"]))
    return client, before, talk["context"]["id"]


def backup_runs(server, folder):
    client, before, context = fill(server)
    writing = threading.Event()
    writing.set()

    def busy():
        while writing.is_set():
            sandbox = client.create()
            client.api("DELETE", f"/sandboxes/{sandbox['sandboxID']}")

    thread = threading.Thread(target=busy)
    thread.start()
    ran = sandglass(server, "backup", "--json", f"{folder}/one")
    writing.clear()
    thread.join()
    made = json.loads(ran.stdout) if ran.returncode == 0 else {}
    check("a server that works is backed up", made.get("snapshots") == 2 and made.get("contexts") == 1
          and made.get("secrets") == 1 and made.get("leftOut") == [], f"{ran.stdout} {ran.stderr}")
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
    status, volumes = client.api("GET", "/volumes")
    check("volumes are not, and their names are free", (status, volumes) == (200, [])
          and client.api("POST", "/volumes", {"name": "data"})[0] == 201, volumes)
    ran = subprocess.run(
        [server.program, "audit", "verify", "--state", server.state], text=True, capture_output=True, check=False, timeout=60)
    check("the record is whole", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")


def restores(old, folder, before, context):
    check("the record of the tenant is in it", glob.glob(f"{folder}/one/guard/audit/*/audit-*.jsonl"),
          os.listdir(f"{folder}/one/guard/audit"))
    new = Server(old.program, f"{folder}/new")
    new.key = old.key
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
    check("with the volumes", glob.glob(f"{aside}/volumes/*/*") and not os.path.exists(f"{new.state}/volumes"))
    return new


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
    new = restores(server, folder, before, context)
    damaged(server, folder)
    database_gone(new, folder, before, context)
    begin_anew(new)
    print(f"# steps {number}")


main()
