"""The verb `sandglass agents` against a server: the steps behind agents.sh."""
import io
import json
import os
import subprocess
import sys
import tarfile

from server_client import Server, until

number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok:
        print(f"# {str(detail)[:1500]}")
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def make_sources(directory):
    os.mkdir(f"{directory}/src")
    with open(f"{directory}/src/file", "w", encoding="ascii") as f:
        f.write("content\n")
    with tarfile.open(f"{directory}/climbs.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../escape"), io.BytesIO())
    with open(f"{directory}/large.tar", "wb") as f:
        f.truncate(13 << 20)


class Verb:
    def __init__(self, program, server, directory):
        self._program, self._directory = program, directory
        self._env = {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": f"http://127.0.0.1:{server.port}"}

    def __call__(self, *words):
        return subprocess.run([self._program, "agents", *words], env=self._env, cwd=self._directory, capture_output=True,
                              text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)

    def json(self, action, *words):
        return json.loads(self(action, "--json", *words).stdout)

    def ended(self, agent):
        def look():
            found = self.json("show", agent)
            return found if found["state"] not in ("starting", "running") else None
        return until(look, 30, 0.05)


def life(agents):
    listed = agents("ls")
    check("there are none at first", listed.returncode == 0 and listed.stdout.split() == [
        "ID", "STATE", "STARTED", "ENDS", "IN/OUT", "SANDBOX", "COMMAND"], listed)
    started = agents("start", "--timeout", "5m", "-e", "A=b c", "--", "sh", "-c", "echo \"$A\" >&2; exec cat")
    agent = started.stdout.strip()
    check("start prints an id", started.returncode == 0 and len(agent) == 20 and started.stderr == "", started)
    listed = agents("ls").stdout.splitlines()
    check("ls has it, in columns", len(listed) == 2 and listed[1].split()[:2] == [agent, "running"] and
          listed[1].index("running") == listed[0].index("STATE") and "exec cat" in listed[1], listed)
    check("ls -q has its id alone", agents("ls", "-q").stdout == f"{agent}\n")
    shown = agents("show", agent).stdout
    check("show tells more", "state         running\n" in shown and f"acp           /v1/agents/{agent}/acp\n" in shown, shown)
    logs = until(lambda: (found := agents("logs", agent).stdout) and "b c" in found and found, 20, 0.05)
    check("logs has its standard error", logs and " stderr b c\n" in logs, agents("logs", agent))
    before = agents.json("show", agent)["endAt"]
    check("extend gives it more time", agents("extend", "--timeout", "1h", agent).stdout == f"{agent}\n" and
          agents.json("show", agent)["endAt"] > before)
    stopped = agents("stop", agent)
    check("stop ends it", (stopped.returncode, stopped.stdout) == (0, f"{agent}\n"), stopped)
    check("... as one sees", agents.json("show", agent)["state"] == "killed", agents("show", agent))


def sources(agents):
    look = ["--", "sh", "-c", "pwd >&2; cat file >&2; exit 7"]
    agent = agents("start", "--source", "src", *look).stdout.strip()
    ended = agents.ended(agent)
    logs = [entry["text"].strip() for entry in agents.json("logs", agent)]
    check("a directory is put in", ended["exitCode"] == 7 and "/home/user/project" in str(logs) and "content" in str(logs),
          (ended, logs))
    shown = agents("show", agent).stdout
    check("show tells how it ended", "status        7\n" in shown and "fault         agent\n" in shown, shown)
    refused = agents("start", "--source", "climbs.tar", *look)
    check("a tar that climbs out is refused, and named", refused.returncode == 1 and "../escape" in refused.stderr, refused)
    refused = agents("start", "--source", "large.tar", *look)
    check("one that is too large is not sent", refused.returncode == 2 and "over 12 MiB" in refused.stderr, refused)
    refused = agents("start", "--source", "nowhere", *look)
    check("one that is not there", refused.returncode == 2 and "nowhere" in refused.stderr, refused)


def shared(agents):
    agent = agents.json("start", "--conversation", "talk", "--network", "block", "--", "cat")
    check("in the sandbox of a conversation", (agent["conversationId"], agent["pathId"]) == ("talk", "main"), agent)
    other = agents.json("start", "--sandbox", agent["sandboxId"], "--serve-fs", "--", "cat")
    check("... and in that sandbox", other["sandboxId"] == agent["sandboxId"], other)
    stopped = agents("stop", agent["agentId"], other["agentId"], "--json")
    check("several are stopped at once", json.loads(stopped.stdout) == [agent["agentId"], other["agentId"]], stopped)


def mistakes(agents):
    for words, status, text in (
            ((), 2, "no action given"), (("frob",), 2, "'frob' is not ls, start"), (("start",), 2, "start takes"),
            (("show",), 2, "show takes ID"), (("show", "a/b"), 2, "not the id of an agent"), (("ls", "x"), 2, "unexpected"),
            (("ls", "--source", "x"), 2, "--source is not an option of ls"), (("extend", "x"), 2, "needs --timeout"),
            (("start", "--path", "p", "--", "x"), 2, "--path needs --conversation"),
            (("start", "--sandbox", "a", "--conversation", "b", "--", "x"), 2, "not both"),
            (("start", "--into", "a", "--", "x"), 2, "--into is for"),
            (("show", "a" * 20), 1, "doesn't exist"), (("stop", "a" * 20), 1, "doesn't exist"),
            (("start", "--", "no-such-agent"), 1, "no-such-agent"),
            (("start", "--template", "none", "--", "x"), 1, "none")):
        done = agents(*words)
        check(f"agents {' '.join(words)[:40]}: refused", done.returncode == status and text in done.stderr and
              done.stdout == "" and done.stderr.count("\n") == 1, done)


def main(program, directory):
    make_sources(directory)
    server = Server(program, f"{directory}/state")
    server.start()
    try:
        agents = Verb(program, server, directory)
        for part in (life, sources, shared, mistakes):
            part(agents)
    finally:
        check("the server ends as it should", server.stop() == 0)


main(*sys.argv[1:])
