"""Lines pass as they are, in both directions at once, and the agent's end is the program's."""
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
import unittest

from harness import ACP, AgentTest

sys.path.insert(0, str(ACP))

from _acp import lines  # noqa: E402


class Passing(AgentTest):
    def test_bytes_are_what_they_were(self):
        hosted = self.host("/bin/cat")
        noise = random.Random(1).randbytes(300000).replace(b'"initialize"', b"") + b"no end"
        threading.Thread(target=hosted.process.stdin.write, args=(noise,)).start()
        got = b""
        while len(got) < noise.rfind(b"\n") + 1:
            got += hosted.line()
        rest, status, said = hosted.end()
        self.assertEqual(got + rest, noise)
        self.assertEqual((status, said), (0, ""))

    def test_each_line_comes_at_once(self):
        hosted = self.host("/bin/cat")
        for i in range(200):
            hosted.send({"n": i})
            self.assertEqual(hosted.receive(), {"n": i})
        hosted.end()

    def test_ten_megabytes_both_ways(self):
        hosted = self.host("/bin/cat")
        line = b'{"x":"' + b"a" * (10 << 20) + b'"}\n'
        threading.Thread(target=hosted.write, args=(line * 3,)).start()
        for _ in range(3):
            self.assertEqual(hosted.line(), line)
        hosted.end()

    def test_a_client_that_writes_first_and_reads_later(self):
        # the agent echoes 20 MB while nobody reads; what it is sent must not wait for that for ever
        hosted = self.agent("""
import threading, os
def echo():
    while data := os.read(0, 65536):
        chunks.append(data)
chunks = []
t = threading.Thread(target=echo); t.start()
os.write(1, b"x" * (8 << 20) + b"\\n")
t.join()
send(sum(map(len, chunks)))
""")
        sent = b"y" * (8 << 20) + b"\n"
        hosted.write(sent)  # all of it, before anything is read by us
        hosted.process.stdin.close()
        self.assertEqual(len(hosted.line()), (8 << 20) + 1)
        self.assertEqual(hosted.receive(), len(sent))
        self.assertEqual(hosted.process.wait(30), 0)

    def test_standard_error_stays_apart(self):
        hosted = self.host("/bin/sh", "-c", "echo out; echo err >&2")
        self.assertEqual(hosted.end(), (b"out\n", 0, "err\n"))


class Ending(AgentTest):
    def test_statuses(self):
        for script, status in (("exit 3", 3), ("exit 124", 123), ("exit 127", 123), ("exit 200", 200), ("kill -9 $$", -9),
                               ("kill -TERM $$", -15)):
            self.assertEqual(self.host("/bin/sh", "-c", script).end()[1], status, script)

    def test_what_cannot_be_run(self):
        _, status, said = self.host("no-such-agent").end()
        self.assertEqual(status, 127)
        self.assertIn("no-such-agent", said)
        _, status, said = self.host("/etc/passwd").end()
        self.assertEqual(status, 126)
        self.assertIn("/etc/passwd", said)

    def test_last_words_are_delivered(self):
        hosted = self.host("/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo")
        time.sleep(0.2)
        self.assertEqual(hosted.end()[0], b"x" * 3000000 + b"\n")

    def test_a_child_that_keeps_the_pipe_is_not_waited_for(self):
        began = time.monotonic()
        out, status, _ = self.host("/bin/sh", "-c", "sleep 9 2>/dev/null & echo done").end()
        self.assertEqual((out, status), (b"done\n", 0))
        self.assertLess(time.monotonic() - began, 8)

    def test_the_client_is_gone(self):
        ours, theirs = os.pipe()
        command = [sys.executable, "-I", str(ACP / "serve_fs.py"), "--", "/bin/sh", "-c", "while echo y; do :; done"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL) as process:
            os.close(theirs)
            os.read(ours, 1)
            os.close(ours)
            self.assertEqual(process.wait(30), -signal.SIGPIPE)


class Pieces(unittest.TestCase):
    """What is made of the bytes of a pipe."""

    def pieces(self, *writes):
        ours, theirs = os.pipe()
        found = []
        thread = threading.Thread(target=lambda: found.extend(lines.Lines(ours, 10)))
        thread.start()
        for data in writes:
            os.write(theirs, data)
            until = time.monotonic() + 20
            while select.select([ours], [], [], 0)[0] and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(0.005)  # it has been taken out; whether it was looked at cannot be seen
        os.close(theirs)
        thread.join(20)
        os.close(ours)
        return found

    def test_lines_are_whole(self):
        self.assertEqual(self.pieces(b"a\nb", b"c", b"\nd\n", b"e"),
                         [(b"a\n", True), (b"bc\nd\n", True), (b"e", False)])

    def test_a_line_that_is_too_long_is_not_kept(self):
        self.assertEqual(self.pieces(b"x" * 8, b"y" * 8, b"z", b"z\na\nb", b"\n"),
                         [(b"x" * 8 + b"y" * 8, False), (b"z", False), (b"z\n", False), (b"a\n", True), (b"b\n", True)])


class Initialize(AgentTest):
    def initialized(self, params):
        hosted = self.agent("send(receive())")
        request = {"jsonrpc": "2.0", "id": "i-1", "method": "initialize", "params": params}
        hosted.send(request)
        got = hosted.receive()
        hosted.end()
        self.assertEqual({**got, "params": None}, {**request, "params": None})
        return got["params"]

    def test_abilities_are_added(self):
        for given in ({}, {"clientCapabilities": {}}, {"clientCapabilities": {"fs": {"readTextFile": False}}},
                      {"clientCapabilities": None}, {"clientCapabilities": {"fs": None, "terminal": False}}):
            params = self.initialized({"protocolVersion": 1, **given})
            self.assertEqual(params, {"protocolVersion": 1, "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}})

    def test_others_are_kept(self):
        params = self.initialized({"protocolVersion": 1, "clientInfo": {"name": "é"},
                                   "clientCapabilities": {"_meta": {"a": 1}, "fs": {"_meta": {}}}})
        self.assertEqual(params["clientInfo"], {"name": "é"})
        self.assertEqual(params["clientCapabilities"]["_meta"], {"a": 1})
        self.assertEqual(params["clientCapabilities"]["fs"]["_meta"], {})

    def test_what_only_looks_like_it(self):
        hosted = self.host("/bin/cat")
        for line in (b'{"method":"other","x":"initialize"}\n', b'"initialize"\n', b'["initialize"]\n',
                     b'{"method": "initialize"}\n', b'{"method":"initialize","params":[ ]}\n', b'{"initialize" nonsense\n'):
            hosted.write(line)
            self.assertEqual(hosted.line(), line)
        hosted.end()


class Requests(AgentTest):
    def test_thousands_with_ids_of_any_type(self):
        with open(os.path.join(self.root, "f"), "w", encoding="utf-8") as f:
            f.write("x")
        found = self.result(f"""
path = "{self.root}/f"
ids = [i if i % 3 == 0 else str(i) if i % 3 == 1 else None for i in range(3000)]
for i in ids:
    a = ask("fs/read_text_file", {{**S, "path": path}}, i)
    assert a == {{"jsonrpc": "2.0", "id": i, "result": {{"content": "x"}}}}, a
send("all")
""")
        self.assertEqual(found, "all")

    def test_all_at_once_in_between_others(self):
        # the agent writes all before it reads any: neither side waits for the other
        hosted = self.agent("""
import threading
got = []
def read():
    while len(got) < 4000:
        got.append(receive())
t = threading.Thread(target=read); t.start()
for i in range(4000):
    send({"jsonrpc": "2.0", "id": i, "method": "fs/read_text_file", "params": {**S, "path": "/nowhere"}})
    send({"jsonrpc": "2.0", "method": "session/update", "params": {"n": i}})
t.join()
send(sorted(m["id"] for m in got) == list(range(4000)) and all(m["error"]["code"] == -32002 for m in got))
""")
        for i in range(4000):
            self.assertEqual(hosted.receive()["params"]["n"], i)
        self.assertIs(hosted.receive(), True)
        hosted.end()

    def test_an_agent_that_never_reads_its_answers(self):
        hosted = self.agent("""
for i in range(2000):
    send({"jsonrpc": "2.0", "id": i, "method": "fs/read_text_file", "params": {**S, "path": "/etc/services"}})
send("written")
""")
        self.assertEqual(hosted.receive(), "written")
        self.assertEqual(hosted.end()[1], 0)

    def test_others_are_the_clients(self):
        hosted = self.agent("""
send({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": {"x": "terminal/create"}})
send(receive())
send({"jsonrpc": "2.0", "id": 2, "method": "fs/unknown", "params": {}})
send({"jsonrpc": "2.0", "id": 3, "result": {"text": "fs/read_text_file"}})
""")
        self.assertEqual(hosted.receive()["method"], "session/request_permission")
        hosted.send({"jsonrpc": "2.0", "id": 1, "result": {}})
        self.assertEqual(hosted.receive(), {"jsonrpc": "2.0", "id": 1, "result": {}})
        self.assertEqual(hosted.receive()["method"], "fs/unknown")
        self.assertEqual(hosted.receive()["result"], {"text": "fs/read_text_file"})
        hosted.end()

    def test_an_escaped_slash(self):
        found = self.result(r"""
sys.stdout.write('{"jsonrpc":"2.0","id":9,"method":"fs\\/read_text_file","params":{"sessionId":"s","path":"\\/nowhere"}}\n')
sys.stdout.flush()
send(receive()["error"]["code"])
""")
        self.assertEqual(found, -32002)

    def test_notifications_and_nonsense(self):
        hosted = self.agent("""
send({"jsonrpc": "2.0", "method": "fs/read_text_file", "params": {**S, "path": "/etc/passwd"}})
send([ask("fs/read_text_file", p)["error"]["code"] for p in (None, [], 1, {}, {"sessionId": 1, "path": "/x"},
      {**S, "path": "x"}, {**S, "path": "/a\\0b"}, {**S, "path": "/x", "line": -1}, {**S, "path": "/x", "limit": "1"})])
""")
        self.assertEqual(hosted.receive(), [-32602] * 9)
        self.assertEqual(hosted.end()[0], b"")

    def test_deep_json_is_passed_on(self):
        hosted = self.host("/bin/cat")
        line = b'"fs/' + b"[" * 100000 + b"\n"
        hosted.write(line)
        self.assertEqual(hosted.line(), line)
        hosted.end()
