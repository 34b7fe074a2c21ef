"""What needs a world and much of Debian's mirror, on a real server: the steps behind tests/long/run."""
import os
import re
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, f"{TOP}/tests/system")
from default_world import mirror  # noqa: E402
from server_client import Server, until  # noqa: E402
from worlds import As, check, sandglass, says  # noqa: E402

WORLD_S, BUILD_S, COMMAND_S = 900, 1800, 300
PACKAGES = "apt ca-certificates python3 passwd procps usr-is-merged locales\n"
READY = '[ -n "$(ss -Htuln sport = :6080)" ]'
PAGE = "<title>a red page</title><body style=background:red>"
# How many pixels of a picture are red, and how many colours it has.
COLOURS = """import collections
data = open('/tmp/screen.ppm', 'rb').read()
kind, _, size, most, pixels = data.split(b'\\n', 4)
assert kind == b'P6' and size == b'1280 800' and most == b'255', (kind, size, most)
found = collections.Counter(zip(pixels[0::3], pixels[1::3], pixels[2::3]))
print(found[255, 0, 0] > 300000, len(found) > 16)
"""


def variables(server):
    url = f"http://127.0.0.1:{server.port}"
    return {**os.environ, "E2B_API_KEY": server.key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}


def begin(program, folder):
    """A server whose base is a world, made of the host's own Debian."""
    with open(f"{folder}/packages", "w", encoding="ascii") as file:
        file.write(PACKAGES)
    server = Server(program, f"{folder}/state", "--sandbox-disk", "2G", "--sandbox-memory", "2G", "--sandbox-cpus", "2", *mirror())
    server.start()
    ran = sandglass(server, "world", "make", "--state", server.state, "--url", f"http://127.0.0.1:{server.port}",
                    "--packages", f"{folder}/packages", seconds=WORLD_S)
    check("a world is made", ran.returncode == 0, ran.stderr)
    return server


def mastra(server):
    """Takes over the lines of a program that prints TAP of its own."""
    ran = subprocess.run(["node", f"{HERE}/mastra.test.mjs"], env=variables(server), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False, timeout=BUILD_S)
    for line in ran.stdout.splitlines():
        told = re.match(r"(ok|not ok) \d+ - (.*)", line)
        if told:
            check(f"mastra: {told[2]}", told[1] == "ok")
        else:
            print("# " + line)
    check("mastra: comes to its end", ran.returncode in (0, 1) and re.search(r"^1\.\.[1-9]", ran.stdout, re.M), ran.returncode)


def greeting(server, client, sandbox):
    """What VNC says first, behind a WebSocket."""
    with socket.create_connection(("127.0.0.1", server.port), COMMAND_S) as s, s.makefile("rb") as answer:
        headers = client.data_headers(sandbox, "") | {"E2b-Sandbox-Port": "6080", "Host": "localhost", "Upgrade": "websocket",
                                                      "Connection": "Upgrade", "Sec-WebSocket-Key": "A" * 22 + "==", "Sec-WebSocket-Version": "13"}
        del headers["Content-Type"]
        s.sendall(("GET /websockify HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode())
        head = answer.readline()
        while answer.readline().strip():
            pass
        return head.split()[1], answer.read(2 + 12)


def desktop(server):
    client = As(server, COMMAND_S)
    ran = subprocess.run([server.program, "template", "build", f"{TOP}/templates/desktop", "--ready", READY], env=variables(server),
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=BUILD_S)
    check("desktop: it is built by the command that its Dockerfile names", ran.returncode == 0 and ran.stdout == "desktop\n", ran.stdout + ran.stderr[-1500:])
    s = client.create(templateID="desktop", timeout=1200)
    status, page = client.raw("GET", "/vnc.html", headers=client.data_headers(s, "") | {"E2b-Sandbox-Port": "6080"})
    check("desktop: port 6080 shows noVNC", status == 200 and b"noVNC" in page, page[:300])
    told = greeting(server, client, s)
    check("desktop: behind it answers VNC", told == (b"101", b"\x82\x0cRFB 003.008\n"), told)
    says("desktop: its parts run, as user", client, s, "for p in Xvfb fluxbox x11vnc; do ps -o user= -C $p; done", "user\nuser\nuser\n")
    client.run_as(s, "user", f"echo '{PAGE}' > page.html")
    client.spawn(s, "firefox-esr --no-remote page.html >/tmp/browser 2>&1")
    named = until(lambda: "a red page" in client.run_as(s, "user", "xdotool search --onlyvisible --name 'a red page' getwindowname")[1], COMMAND_S, 1)
    check("desktop: the browser shows a page", named, client.run_as(s, "user", "cat /tmp/browser; ps -eo pid,stat,args")[1])
    says("desktop: nothing else asks for anything", client, s, "xdotool search --onlyvisible --name . getwindowname %@ | grep -v -e Firefox -e '^$'", "", status=1)
    client.run_as(s, "user", f"cat > /tmp/colours.py <<'END'\n{COLOURS}END")
    seen = until(lambda: client.run_as(s, "user", "scrot -o /tmp/screen.ppm && python3 /tmp/colours.py 2>&1")[1] == "True True\n", COMMAND_S, 1)
    check("desktop: a picture of the screen has the page, and what is around it", seen,
          client.run_as(s, "user", "scrot -o /tmp/screen.ppm; python3 /tmp/colours.py 2>&1; head -c 30 /tmp/screen.ppm")[1])


PARTS = {"mastra": mastra, "desktop": desktop}


def main():
    program, folder = sys.argv[1:3]
    server = begin(program, folder)
    for name in sys.argv[3:] or PARTS:
        PARTS[name](server)
    check("the server ends in good order", server.stop() == 0)


if __name__ == "__main__":
    main()
