"""A server whose programs only root can reach: the steps behind private_place.sh."""
import os
import subprocess
import sys

from server_client import Client, Server, until

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail:
        print(f"# {detail}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def children(server):
    """The processes that the warden has started as programs of their own, by name."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = status(name)
        except OSError:
            continue
        if int(fields["PPid"]) == server.process.pid:
            found[fields["Name"]] = int(name)
    return found


def holds_nothing(server):
    for name in ("sandglass-front", "sg-guard"):
        pid = until(lambda name=name: children(server).get(name))
        fields = status(pid)
        caps = {fields[f"Cap{which}"].strip("0") for which in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
        check(f"{name} is another user, without a capability",
              "0" not in fields["Uid"].split() and caps == {""} and fields["NoNewPrivs"] == "1", str(fields))
        files = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        check(f"{name} has no descriptor of its program", not any("libexec" in f for f in files), str(files))


def sandglass(server, *arguments):
    return subprocess.run([server.program, *arguments, "--state", server.state], capture_output=True,
                          text=True, timeout=60, check=False)


def main():
    server = Server(sys.argv[1], sys.argv[2])
    server.start()
    client = Client(server)
    sandbox = client.create()
    check("sandboxes are made and run commands", client.run(sandbox, "echo $((6*7))") == (0, "42\n"))
    holds_nothing(server)
    key = sandglass(server, "key", "create")
    check("keys are made", key.returncode == 0 and key.stdout.startswith("e2b_"), key.stderr)
    for arguments in (("tenant", "list"), ("audit", "verify")):
        answer = sandglass(server, *arguments)
        check(f"sandglass {' '.join(arguments)}", answer.returncode == 0, answer.stderr)
    listed = subprocess.run([server.program, "ps"], capture_output=True, text=True, timeout=60, check=False,
                            env={"E2B_API_URL": f"http://127.0.0.1:{server.port}", "E2B_API_KEY": key.stdout.strip()})
    check("the client's program is found", sandbox["sandboxID"] in listed.stdout, listed.stderr)
    check("it ends", server.stop() == 0)


main()
