"""The server on the kernel of the virtual machine: the steps behind server.sh.

Before Linux 6.3 a tmpfs has no id maps, so a sandbox's changed files have ids of the host, and a
layer must not. Before 6.6 it has no user attributes, where metadata of files would be."""
import errno
import glob
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.parse

from lib import PATIENCE_S, Client, Server, check, equal, group_of, host_pids, sleeper, until

MIB = 1 << 20
MEMORY, DISK = 128 * MIB, 64 * MIB
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def route(sandbox, verb=""):
    return f"/sandboxes/{sandbox['sandboxID']}{verb}"


def says(client, sandbox, command, **fields):
    """Output of a command that must not fail, without the last line feed."""
    try:
        status, output = client.run(sandbox, f"set -e\n{command}", **fields)
    except RuntimeError as error:
        return str(error)
    return output.rstrip("\n") if status == 0 else f"status {status}: {output}"


def root_says(client, sandbox, script):
    """The same of a script of root's."""
    sudo = {"cmd": "/usr/local/bin/sudo", "args": ["bash", "-ec", script]}
    return says(client, sandbox, "", process=sudo)


def connect(client, sandbox):
    status, answer = client.api("POST", "/v2" + route(sandbox, "/connect"), {"timeout": 300})
    return status if status in (200, 201) else (status, answer)


def is_frozen(group):
    return "frozen 1\n" in (group / "cgroup.events").read_text()


# ---- programs and files --------------------------------------------------------------------------


def programs(client):
    sandbox = client.create(envVars={"COLOUR": "green"})
    equal("a command runs", client.run(sandbox, "echo $COLOUR; id -un; exit 3"), (3, "green\nuser\n"))
    equal("as root too", says(client, sandbox, "sudo id -un"), "root")
    group = group_of(sleeper(client, sandbox, "515101"))
    limits = [(group / name).read_text().strip() for name in ("memory.max", "cpu.max")]
    equal("its group has the server's limits; the disk is memory too", limits,
          [str(MEMORY + DISK), "200000 100000"])
    status, _ = client.run(sandbox, "python3 -c 'x = bytearray(300 << 20)'")
    check("too much memory ends the program", status not in (0, None), status)
    equal("... and not the sandbox", says(client, sandbox, "echo on"), "on")
    equal("a kill is answered", client.api("DELETE", route(sandbox))[0], 204)
    check("... and everything has ended then", not host_pids("515101"), host_pids("515101"))


def upload(client, sandbox, path, data, **headers):
    kind = client.data_headers(sandbox, "application/octet-stream")
    return client.raw("POST", "/files?path=" + urllib.parse.quote(path), data, kind | headers)


def download(client, sandbox, path):
    return client.raw("GET", "/files?path=" + urllib.parse.quote(path),
                      headers=client.data_headers(sandbox, "application/octet-stream"))


def tmpfs_keeps_attributes():
    path = "/dev/shm/probe"
    pathlib.Path(path).touch()
    try:
        os.setxattr(path, "user.probe", b"x")
        return True
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return False
    finally:
        os.unlink(path)


def files(client):
    sandbox = client.create()
    content = bytes(range(256)) * 4096
    equal("a file is written", upload(client, sandbox, "/home/user/d/f", content)[0], 200)
    check("... and read", download(client, sandbox, "/home/user/d/f") == (200, content))
    equal("... and belongs to the user", says(client, sandbox, "stat -c %u:%g d d/f"),
          "1000:1000\n1000:1000")
    status, answer = upload(client, sandbox, "/home/user/d/f", b"new", **{"X-Metadata-Colour": "blue"})
    if tmpfs_keeps_attributes():
        check("metadata is kept", status == 200
              and json.loads(answer)[0]["metadata"] == {"colour": "blue"}, (status, answer))
    else:
        check("metadata is refused, and told why", status in (400, 501)
              and "need Linux 6.6" in json.loads(answer)["message"], (status, answer))
        check("... the file is as it was", download(client, sandbox, "/home/user/d/f")[1] == content)
        equal("... and nothing else is there", says(client, sandbox, "ls -A d"), "f")
    status, answer = client.unary(sandbox, "filesystem.Filesystem/Stat", {"path": "/home/user/d/f"})
    check("the file is described", status == 200 and answer["entry"]["owner"] == "user", answer)
    status, answer = client.unary(sandbox, "filesystem.Filesystem/Move", {
        "source": "/home/user/d/f", "destination": "/home/user/g"})
    check("... and moved", status == 200 and says(client, sandbox, "ls -A d g") == "g\n\nd:", answer)
    status, answer = upload(client, sandbox, "/home/user/big", bytes(DISK + MIB))
    check("a full disk is told as that", status == 507, (status, answer))
    client.api("DELETE", route(sandbox))


def figures(client):
    busy, idle = client.create(), client.create()
    client.run(busy, "head -c 20M /dev/zero >f")
    client.spawn(busy, "exec python3 -c 'x = bytearray(50 << 20)\nwhile True: pass'")

    def last(sandbox):
        samples = client.api("GET", route(sandbox, "/metrics"))[1]
        return samples[-1] if samples else None

    def grown():
        m = last(busy)
        return m and m["cpuUsedPct"] > 20 and m["memUsed"] > 50 * MIB and m["memCache"] > 20 * MIB

    check("processor and memory of a busy sandbox are told", until(grown, PATIENCE_S), last(busy))
    m = until(lambda: last(idle), PATIENCE_S)
    check("... and not of another", m["cpuUsedPct"] < 20 and m["memUsed"] < 20 * MIB, m)
    equal("... with its limit", m["memTotal"], MEMORY)
    for sandbox in (busy, idle):
        client.api("DELETE", route(sandbox))


# ---- pauses --------------------------------------------------------------------------------------


def stands_still(group):
    def used():
        return (group / "cpu.stat").read_text().splitlines()[0]

    begin = used()
    time.sleep(1)
    return used() == begin


def pause(client):
    sandbox = client.create()
    group = group_of(sleeper(client, sandbox, "515201"))
    client.spawn(sandbox, "while :; do cat /proc/uptime >>ticks; sleep 0.05; done")

    def ticks():
        return int(client.run(sandbox, "wc -l <ticks")[1] or 0)

    until(lambda: ticks() > 3, PATIENCE_S)
    check("a running sandbox uses its processor", not stands_still(group))
    before = says(client, sandbox, BOOT_ID)
    equal("pause", client.api("POST", route(sandbox, "/pause"), {})[0], 204)
    check("the group is frozen, and stands still", is_frozen(group) and stands_still(group))
    equal("it is told as paused", client.api("GET", route(sandbox))[1]["state"], "paused")
    equal("a second pause is refused", client.api("POST", route(sandbox, "/pause"), {})[0], 409)
    equal("resume", connect(client, sandbox), 201)
    check("the group runs", not is_frozen(group))
    equal("it is the same machine", says(client, sandbox, BOOT_ID), before)
    seen = ticks()
    check("its programs go on", until(lambda: ticks() > seen, PATIENCE_S))
    client.api("POST", route(sandbox, "/pause"), {})
    equal("a paused one is killed", client.api("DELETE", route(sandbox))[0], 204)
    check("... with its processes", not host_pids("515201"))


# What a layer must keep: new, changed and removed files, owners, links, holes, times.
CHANGE = """
cd /home/user
mkdir -p d/e; echo text >d/e/f; chmod 751 d/e/f; chown 1000:100 d d/e/f; chown 60000:60001 d/e
ln d/e/f hard; ln -s d/e/f soft; mkfifo -m 640 fifo; chown -h 33:34 soft fifo
truncate -s 32M sparse; echo end >>sparse; touch -d "2001-02-03 04:05:06" old
echo "# more" >>.profile; echo changed >/etc/hosts
rm .bashrc /etc/shells; rm -r /etc/pam.d; mkdir /etc/pam.d; echo mine >/etc/pam.d/only"""
LOOK = """
cd /home/user
stat -c "%n %a %u:%g %F" d d/e d/e/f hard soft fifo sparse old .profile /etc/hosts /etc/pam.d
if [ d/e/f -ef hard ]; then echo linked; fi
if [ "$(stat -c %b sparse)" -lt 1000 ]; then stat -c %s sparse; tail -c 4 sparse; fi
cat d/e/f /etc/hosts; tail -n 1 .profile; readlink soft; date -u -r old
ls -A . /etc/pam.d; for f in .bashrc /etc/shells; do [ -e $f ] || echo no $f; done"""
SEEN = ("d/e 755 60000:60001 directory", "d/e/f 751 1000:100 regular file", "linked", "33554436",
        "soft 777 33:34 symbolic link", "fifo 640 33:34 fifo", "changed", "# more", "only",
        "Sat Feb  3 04:05:06 UTC 2001", ".profile 644 1000:1000 regular file",
        "/etc/hosts 644 0:0 regular file", "no .bashrc", "no /etc/shells")


def changed_sandbox(client):
    """A sandbox with changed files, and what there is to see of them."""
    sandbox = client.create()
    root_says(client, sandbox, CHANGE)
    seen = root_says(client, sandbox, LOOK)
    missing = [line for line in SEEN if line not in seen.splitlines()]
    check("files are changed", not missing, f"missing {missing} in\n{seen}")
    return sandbox, seen


def foreign_ids(tree):
    """Paths below it whose owner is no id of a sandbox."""
    paths = (os.path.join(top, name) for top, dirs, names in os.walk(tree)
             for name in (*dirs, *names))
    return [p for p in paths for st in (os.lstat(p),) if max(st.st_uid, st.st_gid) >= 65536]


def files_only(client):
    work = f"{client.server.state}/layers"
    sandbox, seen = changed_sandbox(client)
    sleeper(client, sandbox, "515202")
    boot_id = says(client, sandbox, BOOT_ID)
    equal("pause without memory", client.api("POST", route(sandbox, "/pause"), {"memory": False})[0],
          204)
    check("its processes have ended", not host_pids("515202"))
    check("no owner on disk is an id of the host's range", not foreign_ids(work), foreign_ids(work))
    equal("resume boots it", connect(client, sandbox), 201)
    check("it is another machine", says(client, sandbox, BOOT_ID) not in (boot_id, ""))
    equal("its files are as they were", root_says(client, sandbox, LOOK), seen)
    says(client, sandbox, "echo again >>d/e/f; rm -f soft; touch .bashrc")
    client.api("POST", route(sandbox, "/pause"), {"memory": False})
    connect(client, sandbox)
    equal("a second time", says(client, sandbox, "cat d/e/f; stat -c %u:%g d/e/f .bashrc; ls -A"),
          "text\nagain\n1000:100\n1000:1000\n.bashrc\n.profile\nd\nfifo\nhard\nold\nsparse")
    equal("... with the removed files away",
          says(client, sandbox, "ls /etc/pam.d; ls /etc/shells || :"), "only")
    client.api("DELETE", route(sandbox))
    check("nothing of it stays on disk", until(lambda: not glob.glob(f"{work}/*/work-*")),
          glob.glob(f"{work}/*/work-*"))


# ---- copies --------------------------------------------------------------------------------------


def snapshot_of(client, sandbox):
    status, answer = client.api("POST", route(sandbox, "/snapshots"), {})
    if status != 201:
        raise RuntimeError(f"snapshot: {status} {answer}")
    return answer["snapshotID"]


def snapshots(client):
    """Leaves one: its id."""
    layers = f"{client.server.state}/layers"
    sandbox, seen = changed_sandbox(client)
    first = snapshot_of(client, sandbox)
    equal("the sandbox goes on after its snapshot", says(client, sandbox, "echo later >later"), "")
    check("no owner on disk is an id of the host's range", not foreign_ids(layers),
          foreign_ids(layers))
    copy = client.create(templateID=first)
    equal("a sandbox made from it has its files", root_says(client, copy, LOOK), seen)
    equal("... which belong to whom they should",
          says(client, copy, "echo 2 >>d/e/f; cat d/e/f; id -u; stat -c %u ~"),
          "text\n2\n1000\n1000")
    equal("... and not to the source", says(client, sandbox, "cat d/e/f"), "text")
    root_says(client, copy, "cd /home/user; mv d/e/f d; rm -r d/e soft; mkdir d/e; "
                            "touch d/e/g /etc/shells")
    second = snapshot_of(client, copy)
    equal("the first is deleted",
          client.api("DELETE", "/templates/" + urllib.parse.quote(first, safe=""))[0], 204)
    last = client.create(templateID=second)
    equal("a snapshot of a copy has the changes of both",
          says(client, last, "ls -A d/e . /etc/pam.d; cat d/f hard /etc/hosts; "
                             "stat -c %u:%g d/f hard d; stat -c %s /etc/shells"),
          ".:\n.profile\nd\nfifo\nhard\nold\nsparse\n\n/etc/pam.d:\nonly\n\nd/e:\ng\n"
          "text\n2\ntext\nchanged\n1000:100\n1000:100\n1000:100\n0")
    for one in (sandbox, copy, last):
        client.api("DELETE", route(one))
    return second


def forks(client):
    sandbox, seen = changed_sandbox(client)
    status, answer = client.api("POST", route(sandbox, "/fork"), {"count": 2})
    copies = [one.get("sandbox") for one in answer]
    check("two forks are made", status == 201 and all(copies) and len(copies) == 2, answer)
    for copy in copies:
        equal("a fork has the files", root_says(client, copy, LOOK), seen)
    says(client, copies[0], "echo own >>d/e/f")
    equal("... each for itself", [says(client, one, "cat d/e/f") for one in (*copies, sandbox)],
          ["text\nown", "text", "text"])
    for one in (sandbox, *copies):
        client.api("DELETE", route(one))


# ---- ends ----------------------------------------------------------------------------------------


def deadlines(client):
    sandbox = client.create()
    sleeper(client, sandbox, "515301")
    client.api("POST", route(sandbox, "/timeout"), {"timeout": 1})
    check("a sandbox ends at its deadline",
          until(lambda: client.api("GET", route(sandbox))[0] == 404, PATIENCE_S))
    check("... with its processes", until(lambda: not host_pids("515301")))
    for memory in (True, False):
        sandbox = client.create(autoPause=True, autoPauseMemory=memory)
        boot_id = says(client, sandbox, f"echo kept >f; {BOOT_ID}")
        client.api("POST", route(sandbox, "/timeout"), {"timeout": 1})
        paused = until(lambda: client.api("GET", route(sandbox))[1].get("state") == "paused",
                       PATIENCE_S)
        check(f"... or is paused, {'with' if memory else 'without'} memory", paused)
        status, output = connect(client, sandbox), says(client, sandbox, f"cat f; {BOOT_ID}")
        check("... and goes on", status == 201 and output.startswith("kept\n")
              and (output == f"kept\n{boot_id}") == memory, (status, output, boot_id))
        client.api("DELETE", route(sandbox))


def command_line(client):
    url = f"http://127.0.0.1:{client.server.port}"
    where = {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": client.server.key,
             "PATH": os.environ["PATH"]}

    def sandglass(*words):
        done = subprocess.run([client.server.program, *words], env=where, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        return done.returncode, done.stdout + done.stderr

    sandbox = client.create()
    status, output = sandglass("ps", "--json")
    check("sandglass ps", status == 0 and sandbox["sandboxID"] in output, (status, output))
    equal("sandglass exec", sandglass("exec", sandbox["sandboxID"], "--", "sh", "-c", "id -un; exit 4"),
          (4, "user\n"))
    equal("sandglass kill", sandglass("kill", sandbox["sandboxID"])[0], 0)


def front_dies(client):
    server = client.server
    sandbox, paused = client.create(), client.create()
    sleeper(client, sandbox, "515302")
    says(client, paused, "echo kept >f")
    client.api("POST", route(paused, "/pause"), {})
    old = server.front()
    os.kill(old, signal.SIGKILL)
    check("a front that is killed is replaced",
          until(lambda: server.front() not in (None, old), PATIENCE_S))

    def answers():
        try:
            return client.api("GET", route(sandbox))[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    check("... and the new one knows the sandboxes", until(answers, PATIENCE_S))
    check("programs ran on", len(host_pids("515302")) == 1)
    equal("commands run", says(client, sandbox, "echo on"), "on")
    equal("a paused one is resumed", (connect(client, paused), says(client, paused, "cat f")),
          (201, "kept"))
    for one in (sandbox, paused):
        client.api("DELETE", route(one))


def warden_dies(client, snapshot):
    server = client.server
    sandboxes = [client.create() for _ in range(3)]
    for sandbox in sandboxes:
        sleeper(client, sandbox, "515303")
    client.api("POST", route(sandboxes[0], "/pause"), {})
    client.api("POST", route(sandboxes[1], "/pause"), {"memory": False})
    front = server.front()
    server.kill()
    check("the front ends with the warden",
          until(lambda: not os.path.exists(f"/proc/{front}"), PATIENCE_S))
    server.start(PATIENCE_S)
    equal("the next server has no sandbox", client.api("GET", "/v2/sandboxes"), (200, []))
    check("no process of the old one is left, not even a frozen one", not host_pids("515303"))
    equal("nor a group", [g for g in glob.glob("/sys/fs/cgroup/sandglass/*/*/")
                          if not g.endswith("/nobody/")], [])  # that one is the new server's
    equal("nor files", glob.glob(f"{server.state}/layers/*/work-*"), [])
    sandbox = client.create(templateID=snapshot)
    equal("the snapshot is still there", says(client, sandbox, "cat d/f"), "text\n2")


def steps(server):
    client = Client(server, PATIENCE_S)
    programs(client)
    files(client)
    figures(client)
    pause(client)
    files_only(client)
    snapshot = snapshots(client)
    forks(client)
    deadlines(client)
    command_line(client)
    front_dies(client)
    warden_dies(client, snapshot)
    equal("SIGTERM ends it with status 0", server.stop(), 0)


def main():
    program, state = sys.argv[1:]
    server = Server(program, state, "--sandbox-memory", str(MEMORY), "--sandbox-disk", str(DISK))
    try:
        server.start(PATIENCE_S)
        steps(server)
    except BaseException:
        server.process.kill()
        print(server.process.stderr.read(), file=sys.stderr)
        raise


main()
