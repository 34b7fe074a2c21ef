"""G11: words that must not be found anywhere but where they belong."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../lib"))
from host import check, finish, pids, status  # noqa: E402
from server import Site  # noqa: E402

FIRST_SANDBOX_ID = 0x10000000


def word(kind):
    return f"CANARY{kind}{os.urandom(8).hex()}"


def use(site, sandbox, env):
    """A life with everything that writes something down."""
    sandbox.says("true")
    sandbox.says("kill -SEGV $$; nonsense --with args")
    sandbox.put("f", env.encode())
    sandbox.get("none")
    sandbox.rpc("process.Process/Start", {"process": {"cmd": "/nonsense", "envs": {"X": env}}})
    site.ask("GET", "/files?path=f", {"E2b-Sandbox-Id": sandbox.id, "X-Access-Token": env})
    site.api("POST", f"/sandboxes/{sandbox.id}/pause", {})
    site.api("POST", f"/v2/sandboxes/{sandbox.id}/connect", {"timeout": 60})
    site.api("POST", "/v2/sandboxes", f'{{"templateID":"{env}","envVars":{{"A":"{env}"')
    site.api("GET", "/v2/sandboxes", key=env)


def on_disk(site, words):
    wrong = []
    for top, _, files in os.walk(site.dir):
        for name in files:
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                data = f.read()
            wrong += [f"{kind} is in {os.path.relpath(path, site.dir)}"
                      for kind, w in words.items() if w.encode() in data]
    return wrong


def in_processes(words):
    wrong = []
    for pid in pids():
        if int(status(pid).get("Uid", "0").split()[0]) >= FIRST_SANDBOX_ID or pid == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    data = f.read()
            except OSError:
                continue
            wrong += [f"{kind} is in {name} of {status(pid).get('Name')}"
                      for kind, w in words.items() if w.encode() in data]
    return wrong


def in_answers(site, sandbox, secret):
    wrong = []
    for path in (f"/sandboxes/{sandbox.id}", "/v2/sandboxes", "/sandboxes", f"/sandboxes/{sandbox.id}/logs",
                 f"/v2/sandboxes/{sandbox.id}/logs", f"/sandboxes/{sandbox.id}/metrics", "/templates"):
        if secret.encode() in site.api("GET", path).body:
            wrong.append(f"GET {path} tells a variable's value")
    return wrong


with Site() as site:
    env, meta = word("ENV"), word("META")
    sandbox = site.create(envVars={"SECRET": env}, metadata={"note": meta})
    use(site, sandbox, env)
    check("G11 no answer tells it", in_answers(site, sandbox, env))
    check("G11 control: the variable is where it belongs",
          [] if env in sandbox.says("echo $SECRET") else ["it is not in the sandbox"])
    words = {"a variable": env, "metadata": meta, "the API key": site.key,
             "the access token": sandbox.token}
    check("G11 nothing is written to disk or to the log", on_disk(site, words))
    check("G11 no process of the host shows it", in_processes(words))
    sandbox.kill()
    p = subprocess.run(["find", site.dir, "/var/lib/sandglass", "-xdev", "-name", "core*", "-newer",
                        site.log], capture_output=True, text=True)
    check("G11 there is no core file", p.stdout.split())
    check("G11 the server goes on", site.trouble())
finish()
