"""What 'base' and 'code-interpreter-v1' stand on, on a real server: the steps behind default_world.sh."""
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.parse

import world_root
from npm_registry import HOST as REGISTRY_HOST, NpmRegistry
from server_client import Server, until
from worlds import As, check, sandglass, says

MARK = "cat /marker 2>/dev/null || echo the host"
WORLD, HOST = "a file of the world\n", "the host\n"
NO_CRON = "crontab: a sandbox has no cron: it runs no jobs at set times\n"
PATIENCE_S = 120  # for one command


def imports(server, folder, name):
    ran = sandglass(server, "world", "import", "--state", server.state, "--name", name, f"{folder}/root.tar")
    check(f"a world is imported as {name}", ran.returncode == 0, f"{ran.stdout} {ran.stderr}")


def begins(client, template, **fields):
    return client.create(templateID=template, **fields)


# Of the machine's /usr, which may be large, what a shell needs.
LEFT_OUT = ("share", "include", "games", "libexec", "src", "local/?*", "lib/[!ax]*", "lib/*-linux-gnu/*/*", "lib/*-linux-gnu/lib[!cpst]*", "bin/[!bcest]*")
SCRIPT_SANDGLASS = """#!/bin/bash
export TAR_OPTIONS={options!r}
last=${{!#}}
[[ $last != *"tar -c"* ]] || set -- "${{@:1:$#-1}}" "export TAR_OPTIONS=$(printf %q "$TAR_OPTIONS"); $last"
exec {program} "$@"
"""


def copied(server, folder):
    """Packages cannot be had: a copy of the machine's /usr. The script is installed aside, with an apt that finds no mirror."""
    place, worlds = f"{folder}/prefix", os.path.join(os.path.dirname(server.program), "../libexec/sandglass/worlds")
    shutil.copytree(worlds, f"{place}/libexec/sandglass/worlds")
    os.mkdir(f"{place}/bin")
    options = " ".join(f"--exclude=./usr/{name}" for name in LEFT_OUT)
    for name, text in (("bin/sandglass", SCRIPT_SANDGLASS.format(options=options, program=server.program)),
                       ("libexec/sandglass/worlds/debian-layer", "#!/bin/sh\necho 'debian-layer: no mirror answers' >&2\nexit 1\n")):
        with open(f"{place}/{name}", "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(f"{place}/{name}", 0o755)
    make = (f"{place}/libexec/sandglass/worlds/make", "--state", server.state, "--url", f"http://127.0.0.1:{server.port}", "--name", "copied")
    ran = subprocess.run(make, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    check("without packages the machine's /usr is copied", ran.returncode == 0 and ran.stdout.startswith("copied is template"), f"{ran.stdout} {ran.stderr}")
    check("which is told, with the reason", re.search("no mirror answers: copying this machine's /usr, [0-9]+ MB", ran.stderr), ran.stderr)
    client = As(server)
    s = begins(client, "copied")
    says("all of it is root's, and can be changed", client, s, "stat -c '%u %g %n' /usr /usr/bin/bash /home/user /usr/local/lib; echo x | sudo tee /usr/bin/mine",
         "0 0 /usr\n0 0 /usr/bin/bash\n1000 1000 /home/user\n0 1000 /usr/local/lib\nx\n")
    ran = subprocess.run([*make, "--packages", "/dev/null"], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    check("who names packages gets these, or none", ran.returncode == 1 and "no mirror answers" in ran.stderr and "copying" not in ran.stderr, ran.stderr)
    return make


def automatic(server, folder):
    make = copied(server, folder)
    client = As(server)
    before = begins(client, "base")
    says("without a world, base is the host's", client, before, MARK, HOST)
    says("where crontab has a word", client, before, "crontab -l 2>&1", NO_CRON, status=1)
    imports(server, folder, "code-interpreter-v1")
    for template in ("base", "code-interpreter-v1"):
        says(f"with one, {template} stands on it at once", client, begins(client, template), MARK, WORLD)
    says("a sandbox that was there stays as it was", client, before, MARK, HOST)
    ran = subprocess.run([*make, "--host"], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    check("a world is no machine to copy", ran.returncode == 1 and "stands on a world" in ran.stderr, ran.stderr)
    status, found = client.api("GET", "/templates/base")
    check("the template is still the server's", status == 200 and found["public"] and found["aliases"] == ["base"], found)
    status, _ = client.api("DELETE", "/templates/code-interpreter-v1")
    check("and cannot be deleted by a tenant", status == 403, status)
    key = sandglass(server, "key", "create", "--state", server.state, "--tenant", "other").stdout.strip()
    other = As(server)
    other.key = key
    says("other tenants have it too", other, begins(other, "base"), MARK, WORLD)
    return client


def builds(client):
    status, made = client.api("POST", "/v3/templates", {"name": "upon"})
    ids = f"/templates/{made.get('templateID')}/builds/{made.get('buildID')}"
    steps = [{"type": "RUN", "args": [f"({MARK}) > /home/user/mark; apt-get --version | head -c 3 > /home/user/apt"]}]
    client.api("POST", f"/v2{ids}", {"fromTemplate": "base", "steps": steps})
    until(lambda: client.api("GET", f"{ids}/status?logsOffset=0")[1]["status"] in ("ready", "error"), 60)
    status, told = client.api("GET", f"{ids}/status?logsOffset=0")
    check("a build from base begins in the world", told["status"] == "ready", told)
    says("and has its programs", client, begins(client, "upon"), "cat mark apt", WORLD + "apt")


def paused(client):
    s = begins(client, "base")
    client.run_as(s, "user", "echo mine > f")
    client.api("POST", f"/sandboxes/{s['sandboxID']}/pause", {"memory": False})
    status, told = client.api("POST", f"/sandboxes/{s['sandboxID']}/resume", {"timeout": 300})
    check("a sandbox that was paused goes on", status == 201, told)
    says("in its world", client, s, f"cat f; {MARK}", "mine\n" + WORLD)


def mirror():
    """Sandboxes may reach the host's mirror, also if it is an address inside."""
    listed = subprocess.run(["apt-get", "--print-uris", "update"], capture_output=True, text=True, check=True).stdout
    hosts = {urllib.parse.urlsplit(line.split("'")[1]).hostname for line in listed.splitlines()}
    found = {entry[4][0] for host in hosts for entry in socket.getaddrinfo(host, None, socket.AF_INET)}
    return "--egress-internal", ",".join(sorted(found))


def set_to(server, world, *options):
    server.stop()
    server.options = ("--world", world, *(options or mirror()))
    server.start()
    return As(server, PATIENCE_S)


WHEEL = """import zipfile
with zipfile.ZipFile('/tmp/hello-1-py3-none-any.whl', 'w') as z:
    z.writestr('hello.py', 'print("from a wheel")\\n')
    z.writestr('hello-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: hello\\nVersion: 1\\n')
    z.writestr('hello-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('hello-1.dist-info/RECORD', '')
"""


def behaves(client, s):
    """What a Linux is asked for, as root and by sudo."""
    for user in ("user", "root"):
        says(f"crontab has a word for {user}", client, s, "crontab -l 2>&1", NO_CRON, user=user, status=1)
    says("users can be made and become", client, s, "useradd -m bob && su bob -c 'id -un; echo ~'", "bob\n/home/bob\n", user="root")
    says("also by sudo", client, s, "sudo useradd -m -s /bin/bash carol && sudo -u carol id -un && sudo su - carol -c 'pwd; id -un'",
         "carol\n/home/carol\ncarol\n")
    says("locales that are there are quiet", client, s, "LC_ALL=en_US.UTF-8 perl -e 'print qq(fine\\n)' 2>&1", "fine\n")
    says("others can be made", client, s, "echo de_DE.UTF-8 UTF-8 | sudo tee -a /etc/locale.gen && sudo locale-gen >/dev/null && "
         "LC_ALL=de_DE.UTF-8 date -d 2026-03-01 +%B", "de_DE.UTF-8 UTF-8\nMärz\n")


def wheels(client):
    """Debian's pip refuses to install beside its packages, and to be root; a world says that it may."""
    for user, place in (("user", "/usr/local/lib/python3.11"), ("root", "/usr/local/lib/python3.11")):
        s = begins(client, "made:v1")
        client.run_as(s, user, f"cat > /tmp/w.py <<'END'\n{WHEEL}END\npython /tmp/w.py")
        says(f"pip installs for {user}", client, s, f"pip install -q --no-index /tmp/*.whl 2>&1; python -c 'import hello; print(hello.__file__)' | sed 's,^\({place}\).*,\\1,'",
             f"from a wheel\n{place}\n", user=user)


# What E2B's waitForPort, waitForURL and waitForProcess run.
READY = ('[ -n "$(ss -Htuln sport = :8080)" ]', 'curl -s -o /dev/null -w "%{http_code}" http://localhost:8080/there | grep -q "200"',
         "pgrep python3 > /dev/null", "curl -sf localhost:8080/there | grep -q it")


def waits(client):
    """In a world without ss, curl and pgrep."""
    says("the world has none of what ready commands ask for", client, begins(client, "made:v1"), "command -v ss curl pgrep", "", status=1)
    status, made = client.api("POST", "/v3/templates", {"name": "waits"})
    ids = f"/templates/{made.get('templateID')}/builds/{made.get('buildID')}"
    serve = "sleep 1; mkdir -p s; echo it is > s/there; exec python3 -m http.server -d s 8080"
    client.api("POST", f"/v2{ids}", {"fromTemplate": "made:v1", "steps": [], "startCmd": serve, "readyCmd": " && ".join(READY)})
    until(lambda: client.api("GET", f"{ids}/status?logsOffset=0")[1]["status"] in ("ready", "error"), 60)
    status, told = client.api("GET", f"{ids}/status?logsOffset=0")
    check("they work all the same", told["status"] == "ready", told)
    s = begins(client, "waits")
    says("and waited for the program", client, s, "echo >/dev/tcp/localhost/8080 && echo open", "open\n")
    tools = "PATH=$PATH:/usr/local/lib/sandglass-tools; "
    says("what they know not is told", client, s, tools + "ss -l; curl -I localhost; pgrep -f x", "", status=127)
    says("what is not there is not found", client, s, tools + READY[0].replace("8080", "8081") + f" || {READY[1].replace('8080', '8081')} || pgrep nobody || echo none", "none\n")


def installs(server):
    """From the host's own mirror, through the guard: what Mastra's default template does, and many others."""
    client = set_to(server, "made:v1")
    status, made = client.api("POST", "/v3/templates", {"name": "installs"})
    ids = f"/templates/{made.get('templateID')}/builds/{made.get('buildID')}"
    steps = [{"type": "RUN", "args": ["apt-get update && DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y tree", "root"]}]
    client.api("POST", f"/v2{ids}", {"fromTemplate": "base", "steps": steps})
    until(lambda: client.api("GET", f"{ids}/status?logsOffset=0")[1]["status"] in ("ready", "error"), 120)
    status, told = client.api("GET", f"{ids}/status?logsOffset=0")
    check("a build from base installs packages", told["status"] == "ready", told)
    s = begins(client, "installs")
    says("which are there", client, s, "tree --version | head -c 4; sudo apt-get install -y -qq less >/dev/null 2>&1; less --version | head -c 4", "treeless")


REGISTRY_ONLY = {"allowOut": [REGISTRY_HOST], "denyOut": ["0.0.0.0/0"]}
NPMRC = "registry={}\naudit=false\nfund=false\nupdate-notifier=false\nfetch-retries=0\n"
SAYS = "hello from a library to a tool\n"


def npm(server):
    """From a registry, through the guard: what a package needs comes along, and its program is found."""
    with NpmRegistry() as registry:
        client = set_to(server, "made:v1", *registry.options)
        for user in ("user", "root"):
            s = begins(client, "base", network=REGISTRY_ONLY)
            client.run_as(s, user, f"printf '{NPMRC.format(registry.url)}' > ~/.npmrc")
            says(f"npm i -g for {user}", client, s, "npm i -g --silent hello-tool 2>&1; hello-tool; command -v hello-tool",
                 SAYS + "/usr/local/bin/hello-tool\n", user=user)
            says(f"npm install for {user}", client, s, "mkdir ~/app && cd ~/app && npm install --silent hello-tool 2>&1; npx --no-install hello-tool; "
                 "node -p 'require(\"hello-lib\").says'", SAYS + "hello from a library\n", user=user)
        s = begins(client, "base", network=REGISTRY_ONLY)
        client.run_as(s, "user", f"printf '{NPMRC.format(registry.url)}' > ~/.npmrc")
        got = client.cell(s, "!npm i -g --silent hello-tool; hello-tool")
        check("npm i -g in a cell", got == SAYS, got)
        got = client.cell(s, "import os, subprocess\nos.mkdir('app')\n"
                          "subprocess.run(['npm', 'install', '--silent', 'hello-lib'], cwd='app', check=True)\n"
                          "print(os.listdir('app/node_modules'), subprocess.run('hello-tool', capture_output=True, text=True).stdout)")
        check("npm install in a cell, and a program started there", "'hello-lib'" in got and SAYS in got, got)
        fetched = sorted(path for path in registry.asked if path.endswith(".tgz"))
        check("each was fetched from the registry", set(fetched) == {"/hello-lib/-/hello-lib-1.0.0.tgz", "/hello-tool/-/hello-tool-1.0.0.tgz"} and
              len(fetched) >= 6, registry.asked)


def made(server, folder):
    """Of the host's own Debian packages: few of them."""
    with open(f"{folder}/packages", "w", encoding="ascii") as file:
        file.write("apt # a comment\npython3 python3-pip passwd python-is-python3 usr-is-merged locales\n")
    arguments = ("world", "make", "--state", server.state, "--url", f"http://127.0.0.1:{server.port}", "--packages", f"{folder}/packages")
    killed = subprocess.Popen([server.program, *arguments, "--name", "made:v1"], stderr=subprocess.PIPE, text=True, start_new_session=True)
    next((line for line in killed.stderr if "packages configured" in line), None)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    ran = sandglass(server, *arguments, "--name", "made:v1", seconds=300)
    check("a world is made of packages", ran.returncode == 0 and ran.stdout.startswith("made:v1 is template"), f"{ran.stdout} {ran.stderr}")
    check("and how far it is, is told", "packages fetched" in ran.stderr and "packages configured" in ran.stderr, ran.stderr)
    client = As(server)
    s = begins(client, "made:v1")
    says("its packages are configured", client, s, "dpkg -l | grep -c ^i[^i]; dpkg --audit; python -c 'print(6 * 7)'; locale -a | grep en", "0\n42\nen_US.utf8\n")
    says("it is another Debian than the host's", client, s, "cat /etc/hostname; id -un; ls -d ~; ls /usr/share/man 2>/dev/null | wc -l", "sandbox\nuser\n/home/user\n0\n")
    behaves(client, s)
    wheels(client)
    waits(client)
    names = [t["names"] for t in client.api("GET", "/snapshots")[1]]
    keys = json.loads(sandglass(server, "key", "list", "--json", "--state", server.state).stdout)
    check("also of a run that was killed", {k["revoked"] is None for k in keys if k["name"] == "world make"} == {False}, keys)
    check("nothing else is left", sorted(os.listdir(f"{server.state}/worlds")) and not any("unpacked" in str(n) for n in names) and
          not glob.glob("/var/tmp/sandglass-world.*"), names)
    ran = sandglass(server, *arguments[:-1], "/dev/stdin", input="no-such-package\n", seconds=300)
    check("a package that is not there is told in one line", ran.returncode == 1 and
          re.search(r"^sandglass: .*no-such-package", ran.stderr, re.M), ran.stderr)


def main():
    program, folder = sys.argv[1:3]
    world_root.make(f"{folder}/root.tar")
    server = Server(program, f"{folder}/state", *mirror())
    server.start()
    client = automatic(server, folder)
    builds(client)
    paused(client)
    client = set_to(server, "host")
    says("world = host is the host's", client, begins(client, "base"), MARK, HOST)
    says("what was built stays in its world", client, begins(client, "upon"), "cat mark", WORLD)
    client = set_to(server, "mine:v1")
    status, told = client.api("POST", "/v2/sandboxes", {"templateID": "base"})
    check("a world that is not there is told", status == 501 and "the world 'mine:v1' is not there" in told["message"], told)
    imports(server, folder, "mine:v1")
    says("and used when it is", client, begins(client, "base"), MARK, WORLD)
    made(server, folder)
    installs(server)
    npm(server)
    server.stop()


if __name__ == "__main__":
    main()
