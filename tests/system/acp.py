"""The streams of `sandglass acp`: bytes, both directions, backpressure, a client of the protocol, secrets on their way.

acp.py SANDGLASS DIRECTORY: prints TAP lines without a plan."""
import base64
import hashlib
import http.server
import json
import os
import random
import select
import socket
import ssl
import subprocess
import sys
import threading
import time

SG, DIRECTORY = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE_S = 60
count = 0


def step(name, ok, why=""):
    global count
    count += 1
    if not ok:
        print("#", str(why)[:1500])
    print("ok" if ok else "not ok", count, "-", name, flush=True)


def acp(*words, **more):
    return subprocess.Popen([SG, "acp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            bufsize=0, **more)


def feed(process, data):
    def write():
        view = memoryview(data)
        while view:
            view = view[os.write(process.stdin.fileno(), view[:1 << 16]):]
        process.stdin.close()
    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def finish(process):
    status = process.wait(PATIENCE_S)
    said = process.stderr.read().decode()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    return status, said


# ---- bytes ---------------------------------------------------------------------------------------


def bytes_are_what_they_were():
    data = random.Random(8).randbytes(5_000_000)
    process = acp("--", "cat")
    feed(process, data)
    got = process.stdout.read()
    step("random bytes pass unchanged, in and out", got == data, f"{len(got)} of {len(data)}")
    step("... and the end of input is the agent's", finish(process) == (0, ""))


def long_lines():
    line = b'{"x":"' + b"a" * (10 << 20) + b'"}\n'
    process = acp("--", "cat")
    feed(process, line * 3)
    step("lines of 10 MB", process.stdout.read() == line * 3 and finish(process) == (0, ""))


def at_once():
    process = acp("--", "cat")
    ok = True
    for i in range(300):
        message = b'{"n":%d}\n' % i
        os.write(process.stdin.fileno(), message)
        got = b""
        while len(got) < len(message) and select.select([process.stdout], [], [], 10)[0]:
            got += os.read(process.stdout.fileno(), 4096)
        ok = ok and got == message
    process.stdin.close()
    step("each message comes as it is written", ok and finish(process) == (0, ""))


BOTH = """
import hashlib, os, sys, threading
def read():
    while data := os.read(0, 1 << 16):
        h.update(data)
h = hashlib.sha256()
t = threading.Thread(target=read); t.start()
for i in range(200):
    os.write(1, b"%07d\\n" % i * 5000)
t.join()
os.write(2, h.hexdigest().encode())
"""


def both_directions():
    data = random.Random(9).randbytes(8_000_000)
    process = acp("--", "/usr/bin/python3", "-c", BOTH)
    # all is written before anything is read: the agent's output must not hold its input back
    feed(process, data).join(PATIENCE_S)
    step("input goes on while nobody reads output", process.stdin.closed)
    got = process.stdout.read()
    step("... which is all there", got == b"".join(b"%07d\n" % i * 5000 for i in range(200)), len(got))
    status, said = finish(process)
    step("... and so is the input", (status, said) == (0, hashlib.sha256(data).hexdigest()), said)


def a_flood_waits():
    process = acp("-m", "64M", "--", "/usr/bin/yes", "y" * 1000)
    os.read(process.stdout.fileno(), 1)
    peak = 0
    until = time.monotonic() + 1
    while time.monotonic() < until:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            peak = max(peak, int(f.read().split("VmRSS:")[1].split()[0]))
        time.sleep(0.05)
    step("output that nobody reads is not gathered", peak < 32 << 10, f"{peak} KiB")
    process.stdout.close()
    status = process.wait(PATIENCE_S)
    said = process.stderr.read().decode()
    step("a client that is gone ends it", status == 141 and "client: the client has closed" in said, (status, said))
    process.stdin.close()
    process.stderr.close()


def sockets():
    """As Node gives them to what it starts."""
    ours, theirs = socket.socketpair()
    with subprocess.Popen([SG, "acp", "--", "cat"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        theirs.close()
        data = b"x" * 3_000_000 + b"\n"
        threading.Thread(target=lambda: (ours.sendall(data), ours.shutdown(socket.SHUT_WR)), daemon=True).start()
        got = b""
        while piece := ours.recv(1 << 16):
            got += piece
        step("sockets in place of pipes", got == data and process.wait(PATIENCE_S) == 0, len(got))
        ours.close()


def input_is_not_changed_for_others():
    ours, theirs = os.pipe()
    process = subprocess.Popen([SG, "acp", "--", "true"], stdin=subprocess.DEVNULL, stdout=theirs)
    process.wait(PATIENCE_S)
    step("the caller's descriptors stay blocking", os.get_blocking(theirs))
    os.close(ours)
    os.close(theirs)


# ---- a client of the protocol --------------------------------------------------------------------


class Client:
    def __init__(self, *options, abilities=None):
        with open(os.path.join(HERE, "acp_agent.py"), encoding="utf-8") as f:
            code = f.read()
        self.process = acp(*options, "--", "/usr/bin/python3", "-c", code)
        self.reader = os.fdopen(os.dup(self.process.stdout.fileno()), "r", encoding="utf-8")
        self.files = {}
        self.asked = []
        self.last = 0
        self.call("initialize", protocolVersion=1, **({"clientCapabilities": abilities} if abilities else {}))
        self.call("session/new", cwd="/home/user", mcpServers=[])

    def send(self, value):
        os.write(self.process.stdin.fileno(), json.dumps(value).encode() + b"\n")

    def call(self, method, **params):
        """The answer, or what was said meanwhile if that is what matters."""
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        said = None
        while message := json.loads(self.reader.readline()):
            if message.get("method") == "session/update":
                said = json.loads(message["params"]["update"]["content"]["text"])
            elif "method" in message:
                self.asked.append(message["method"])
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "the client's"}})
            else:
                return said if said is not None else message["result"]

    def prompt(self, text):
        return self.call("session/prompt", sessionId="s", prompt=[{"type": "text", "text": text}])

    def end(self):
        self.process.stdin.close()
        self.reader.close()
        return finish(self.process)


def requests_are_the_clients():
    client = Client(abilities={"fs": {"readTextFile": True}})
    step("what a client can do is said as it was", client.prompt("abilities") == {"fs": {"readTextFile": True}})
    step("an agent's requests are its client's", client.prompt("read /etc/passwd") == {"content": "the client's"})
    step("... each of them", client.asked == ["fs/read_text_file"] and client.end() == (0, ""), client.asked)


def served_inside():
    client = Client("--serve-fs")
    step("--serve-fs: the agent may ask for files and terminals", client.prompt("abilities") == {
        "fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True})
    step("... to write a file", client.prompt("write /home/user/new/f content") == {})
    step("... to read it", client.prompt("read /home/user/new/f") == {"content": "content"})
    step("... the sandbox's own", client.prompt("read /nowhere").get("code") == -32002)
    found = client.prompt("run cat /home/user/new/f; id -un; exit 4")
    step("... to run a command", found == {"ended": {"exitCode": 4, "signal": None}, "output": {
        "output": "contentuser\n", "truncated": False, "exitStatus": {"exitCode": 4, "signal": None}}}, found)
    step("... and the client hears nothing of it", client.asked == [] and client.end() == (0, ""), client.asked)


# ---- secrets -------------------------------------------------------------------------------------


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen.append(self.headers.get("authorization"))
        body = base64.b64encode((self.headers.get("authorization") or "").encode())[::-1]
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


seen = []


def name_server():
    """Every name is here."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))

    def serve():
        while True:
            query, peer = server.recvfrom(512)
            end = 12
            while query[end]:
                end += query[end] + 1
            is_a = query[end + 1:end + 3] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
            server.sendto(query[:2] + b"\x81\x80\0\1\0" + bytes([len(answer) > 0]) + b"\0\0\0\0" + query[12:end + 5] + answer, peer)
    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


def make_certificate():
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=DIRECTORY)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
            "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=api.test", "-keyout", "key.pem",
            "-out", "request.pem")
    with open(os.path.join(DIRECTORY, "ext"), "w", encoding="ascii") as f:
        f.write("subjectAltName=DNS:api.test,DNS:other.test")
    openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-extfile", "ext", "-out", "cert.pem")


def serve_https():
    make_certificate()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(DIRECTORY, "cert.pem"), os.path.join(DIRECTORY, "key.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def secrets():
    port, names = serve_https(), name_server()
    value = "value-of-the-secret-4711"
    surroundings = {**os.environ, "OUTSIDE": value, "SANDGLASS_EGRESS_DNS": f"127.0.0.1:{names}",
                    "SANDGLASS_EGRESS_INTERNAL": "127.0.0.1", "SANDGLASS_EGRESS_ROOTS": os.path.join(DIRECTORY, "ca.pem")}
    script = f'''
curl -sS -H "Authorization: Bearer $KEY" https://api.test:{port}/ >/dev/null || exit 1
printf '%s' "$KEY" | cut -c 1-5
curl -sS -m 5 https://other.test:{port}/ >/dev/null 2>&1 && exit 2
cat /proc/*/environ 2>/dev/null | grep -c '{value[:-1]}'
exit 0'''
    process = acp("--approve", "--secret", "KEY=OUTSIDE@api.test", "--", "sh", "-c", script, env=surroundings)
    process.stdin.close()
    out = process.stdout.read().decode().split()
    status, said = finish(process)
    step("a secret reaches its host", seen == [f"Bearer {value}"], (seen, status, out, said))
    step("... and inside there is something else", out == ["sgph_", "0"] and status == 0, (out, status, said))
    process = acp("--approve", "--network", "api.test,other.test", "--secret", "KEY=OUTSIDE@api.test", "--", "sh", "-c",
                  f'curl -sSk -H "Authorization: Bearer $KEY" https://other.test:{port}/ >/dev/null', env=surroundings)
    process.stdin.close()
    status, said = finish(process)
    step("... other hosts get that", len(seen) == 2 and seen[1].startswith("Bearer sgph_"), (seen, status, said))


for test in (bytes_are_what_they_were, long_lines, at_once, both_directions, a_flood_waits, sockets,
             input_is_not_changed_for_others, requests_are_the_clients, served_inside, secrets):
    test()
