"""Files and terminals, as an agent sees them."""
import json
import os
import time

from harness import AgentTest


class Files(AgentTest):
    def path(self, name, content=None):
        path = os.path.join(self.root, name)
        if content is not None:
            with open(path, "wb") as f:
                f.write(content)
        return path

    def read(self, **params):
        return self.result(f'send(ask("fs/read_text_file", {{**S, **json.loads({json.dumps(json.dumps(params))})}}))')

    def test_a_whole_file(self):
        path = self.path("a", "one\r\ntwo é\n".encode())
        self.assertEqual(self.read(path=path)["result"], {"content": "one\r\ntwo é\n"})

    def test_lines_of_it(self):
        path = self.path("a", b"1\n2\n3\n4")
        for params, content in (({"line": 2}, "2\n3\n4"), ({"line": 2, "limit": 2}, "2\n3\n"), ({"limit": 1}, "1\n"),
                                ({"line": 0, "limit": 1}, "1\n"), ({"line": 9}, ""), ({"limit": 0}, ""),
                                ({"line": None, "limit": None}, "1\n2\n3\n4")):
            self.assertEqual(self.read(path=path, **params)["result"]["content"], content, params)

    def test_what_is_no_text(self):
        self.assertEqual(self.read(path=self.path("a", b"\xff\xfea"))["result"]["content"], "\ufffd\ufffda")

    def test_what_cannot_be_read(self):
        os.mkfifo(self.path("pipe"))
        with open(self.path("big"), "wb") as f:
            f.truncate(65 << 20)
        for path, code in ((self.path("none"), -32002), (self.root, -32602), (self.path("pipe"), -32602),
                           (self.path("big"), -32603), (self.path("a", b"") + "/b", -32002)):
            error = self.read(path=path)["error"]
            self.assertEqual(error["code"], code, path)
            self.assertIn(path, error["message"])

    def test_writing(self):
        path = self.path("new/deep/file")
        for content in ("x" * 1000, "é\r\n", ""):
            text = json.dumps(content)
            self.assertEqual(self.result(f'send(ask("fs/write_text_file", {{**S, "path": "{path}", "content": {text}}}))'),
                             {"jsonrpc": "2.0", "id": 1, "result": {}})
            with open(path, "rb") as f:
                self.assertEqual(f.read(), content.encode())

    def test_ten_megabytes(self):
        path = self.path("big")
        found = self.result(f"""
text = "ab" * (5 << 20)
ask("fs/write_text_file", {{**S, "path": "{path}", "content": text}})
send(ask("fs/read_text_file", {{**S, "path": "{path}"}})["result"]["content"] == text)
""")
        self.assertIs(found, True)

    def test_what_cannot_be_written(self):
        os.mkdir(self.path("d"))
        self.path("f", b"")
        for path, content, code in ((self.path("d"), "x", -32602), (self.path("f/g"), "x", -32002), (self.path("n"), 1, -32602)):
            found = self.result(
                f'send(ask("fs/write_text_file", {{**S, "path": "{path}", "content": {json.dumps(content)}}}))')
            self.assertEqual(found["error"]["code"], code, path)


TERMINAL = """
def create(*words, **more):
    return ask("terminal/create", {**S, "command": words[0], "args": list(words[1:]), **more})["result"]["terminalId"]
def call(method, name, id=1):
    return ask("terminal/" + method, {**S, "terminalId": name}, id)
"""


class Terminals(AgentTest):
    def found(self, code):
        return self.result(TERMINAL + code)

    def test_a_command(self):
        found = self.found("""
t = create("sh", "-c", "echo out; echo err >&2; exit 3")
send([call("wait_for_exit", t), call("output", t), call("release", t), call("output", t)])
""")
        self.assertEqual(found[0]["result"], {"exitCode": 3, "signal": None})
        self.assertEqual(found[1]["result"], {"output": "out\nerr\n", "truncated": False,
                                              "exitStatus": {"exitCode": 3, "signal": None}})
        self.assertEqual(found[2]["result"], {})
        self.assertEqual(found[3]["error"]["code"], -32002)

    def test_environment_and_directory(self):
        found = self.found(f"""
t = create("sh", "-c", "echo $A; pwd", env=[{{"name": "A", "value": "b c"}}], cwd="{self.root}")
call("wait_for_exit", t)
send(call("output", t)["result"]["output"])
""")
        self.assertEqual(found, f"b c\n{self.root}\n")

    def test_a_line_for_a_shell(self):
        found = self.found("""
t = ask("terminal/create", {**S, "command": "echo a | tr a b"})["result"]["terminalId"]
call("wait_for_exit", t)
send(call("output", t)["result"]["output"])
""")
        self.assertEqual(found, "b\n")

    def test_output_while_it_runs_and_kill(self):
        found = self.found("""
t = create("sh", "-c", "echo begun; sleep 60")
while not (o := call("output", t)["result"])["output"]: pass
call("kill", t)
send([o, call("wait_for_exit", t)["result"], call("output", t)["result"]])
""")
        self.assertEqual(found[0], {"output": "begun\n", "truncated": False, "exitStatus": None})
        self.assertEqual(found[1], {"exitCode": None, "signal": "SIGTERM"})
        self.assertEqual(found[2]["exitStatus"], {"exitCode": None, "signal": "SIGTERM"})

    def test_the_last_bytes_are_kept_whole_characters(self):
        found = self.found("""
t = create("python3", "-c", "print('é' * 1000, end='')", outputByteLimit=101)
call("wait_for_exit", t)
send(call("output", t)["result"])
""")
        self.assertEqual((found["output"], found["truncated"]), ("é" * 50, True))

    def test_waiting_holds_nothing_up(self):
        found = self.found("""
t = create("sh", "-c", "sleep 0.3")
send({"jsonrpc": "2.0", "id": "w", "method": "terminal/wait_for_exit", "params": {**S, "terminalId": t}})
first = call("output", t, "o")
send([first["id"], first["result"]["exitStatus"], receive()["id"]])
""")
        self.assertEqual(found, ["o", None, "w"])

    def test_a_wait_that_is_cancelled(self):
        found = self.found("""
t = create("sleep", "60")
send({"jsonrpc": "2.0", "id": 7, "method": "terminal/wait_for_exit", "params": {**S, "terminalId": t}})
send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}})
a = receive()
call("release", t)
send(a)
""")
        self.assertEqual((found["id"], found["error"]["code"]), (7, -32800))

    def test_release_ends_it(self):
        found = self.found("""
t = create("sleep", "60")
send({"jsonrpc": "2.0", "id": 7, "method": "terminal/wait_for_exit", "params": {**S, "terminalId": t}})
send({"jsonrpc": "2.0", "id": 8, "method": "terminal/release", "params": {**S, "terminalId": t}})
send(sorted([receive(), receive()], key=lambda m: m["id"]))
""")
        self.assertEqual(found[0]["result"], {"exitCode": None, "signal": "SIGKILL"})
        self.assertEqual(found[1]["result"], {})

    def test_they_end_with_the_agent(self):
        mark = os.path.join(self.root, "pid")
        self.found(f"""
t = create("sh", "-c", "echo $$ > {mark}.new; mv {mark}.new {mark}; sleep 60")
import os, time
while not os.path.exists("{mark}"): time.sleep(0.01)
send("begun")
""")
        with open(mark, encoding="ascii") as f:
            pid = int(f.read())
        until = time.monotonic() + 20
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < until:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":  # dead; who has to wait for it is gone
                    break
            time.sleep(0.02)
        self.assertLess(time.monotonic(), until)

    def test_what_cannot_be(self):
        found = self.found("""
send([ask("terminal/create", {**S, **p})["error"]["code"] for p in ({}, {"command": ""}, {"command": "x", "args": [1]},
      {"command": "no-such-program"}, {"command": "ls", "cwd": "relative"}, {"command": "ls", "cwd": "/nowhere"},
      {"command": "ls", "env": [1]}, {"command": "ls", "outputByteLimit": -1})]
     + [call(m, "term_9")["error"]["code"] for m in ("output", "kill", "release", "wait_for_exit")])
""")
        self.assertEqual(found, [-32602, -32602, -32602, -32603, -32602, -32603, -32602, -32602] + [-32002] * 4)

    def test_not_without_end(self):
        found = self.found("""
for i in range(256): create("true")
send(ask("terminal/create", {**S, "command": "true"})["error"]["message"])
""")
        self.assertIn("release", found)
