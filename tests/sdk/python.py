"""sdk/python: what goes wrong, and how both its forms take it. E2B_API_URL and E2B_API_KEY name a server; see tests/e2e/sdk.test.mjs."""
import asyncio
import concurrent.futures
import os
import pathlib
import socket
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from urllib.parse import urlsplit

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "sdk/python"))
import sandglass  # noqa: E402
from sandglass import AsyncSandglass, Sandglass, policies  # noqa: E402

ECHO = ["python3", "-c", "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"]


class Scripted:
    """A server that answers as it is told, one request after the other; None: not at all."""

    def __init__(self, *answers):
        self.answers, self.asked, self.headers = list(answers), [], []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.answer, args=[connection], daemon=True).start()

    def answer(self, connection):
        with connection, connection.makefile("rb") as file:
            while self.answers:
                line = file.readline()
                if not line:
                    return
                lines = (header.decode().strip().partition(": ") for header in iter(file.readline, b"\r\n"))
                headers = {name.lower(): value for name, _, value in lines}
                file.read(int(headers.get("content-length", 0)))
                self.asked.append(line.decode().rsplit(" ", 1)[0])
                self.headers.append(headers)
                answer = self.answers.pop(0)
                if answer is None:
                    time.sleep(1)
                if not answer:
                    return
                connection.sendall(answer)


def answer(status, body=b"{}", *headers):
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "X-Request-Id: rrrrrrrrrrrrrrrrrrrr", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


BUSY = answer(503, b'{"message": "no room"}', "Retry-After: 0")
LIMIT = answer(429, b'{"message": "tenant_contexts", "unavailable": true}')
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"paths\"\r\n5;x=y\r\n: []}\r\n0\r\nX: y\r\n\r\n"
ELSEWHERE = answer(307, b"", "Location: /v1/elsewhere")
PATHS = answer(200, b'{"paths": []}')


class Cut:
    """A way to the server that can be cut."""

    def __init__(self):
        parts = urlsplit(os.environ["E2B_API_URL"])
        self.far, self.open = (parts.hostname, parts.port), []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            near, far = self.socket.accept()[0], socket.create_connection(self.far)
            self.open += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=[a, b], daemon=True).start()

    @staticmethod
    def carry(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut(self):
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()


class Waiting(unittest.TestCase):
    def test_what_is_tried_again(self):
        fake = Scripted(BUSY, CHUNKED, LIMIT, BUSY, ELSEWHERE, PATHS, b"", PATHS, b"", None)
        with Sandglass(fake.url, "k", retries=1, request_timeout_seconds=0.5) as server:
            self.assertEqual(server.list_paths("c"), [])
            with self.assertRaisesRegex(sandglass.LimitError, "^tenant_contexts$") as told:
                server.list_paths("c")
            err = told.exception
            self.assertEqual((err.status, err.request_id, err.unavailable), (429, "r" * 20, True))
        with Sandglass(fake.url, "k", retries=0, request_timeout_seconds=0.5) as server:
            self.assertRaisesRegex(sandglass.UnavailableError, "no room", server.list_paths, "c")
            self.assertEqual(server.list_paths("c"), [])
            self.assertEqual(server.list_paths("c"), [])  # the kept connection is closed before it
            self.assertRaises(sandglass.ConnectionFailedError, server.clean_up, "c")  # which may have been done
            self.assertRaises(sandglass.TimedOutError, server.list_paths, "c")
        self.assertEqual(len(fake.asked), 10)
        self.assertRaises(sandglass.ConnectionFailedError, Sandglass("http://127.0.0.1:1", "k").list_paths, "c")

    def test_what_is_told_to_whom(self):
        fake = Scripted(answer(200, b'{"sandboxID": "s", "templateID": "t", "envdAccessToken": "e"}'), PATHS, PATHS)
        with Sandglass(fake.url, "k") as server:
            sandbox = server.get_sandbox("../a/b?c")
            with sandbox.fetch(8000, "/a b?c=é") as page:
                self.assertEqual(page.read(), b'{"paths": []}')
            sandbox.read_file("/x")
            self.assertRaises(sandglass.InvalidError, sandbox.fetch, 80, "@127.0.0.1:1/")
            self.assertRaises(ValueError, sandbox.fetch, 80, "/", headers={"a": "b\r\nc: d"})
        self.assertEqual(fake.asked, ["GET /sandboxes/..%2Fa%2Fb%3Fc", "GET /a%20b?c=%C3%A9", "GET /files?path=%2Fx"])
        self.assertEqual([(told.get("x-api-key"), told.get("x-access-token")) for told in fake.headers], [("k", None), (None, None), (None, "e")])

    def test_sandboxes(self):
        with Sandglass() as server, server.create_sandbox() as sandbox:
            sandbox.write_file("/tmp/d/bytes", b"\0\xff")
            sandbox.make_dir("/tmp/d")
            sandbox.move_file("/tmp/d/bytes", "/tmp/d/moved")
            self.assertEqual(sandbox.read_bytes("/tmp/d/moved"), b"\0\xff")
            self.assertEqual(sandbox.list_files("/tmp/d"), [sandglass.FileInfo("moved", "/tmp/d/moved", "file", 2)])
            first = sandbox.checkpoint("first")
            sandbox.remove_file("/tmp/d")
            self.assertFalse(sandbox.file_exists("/tmp/d"))
            fork = sandbox.fork()[0]
            self.assertFalse(fork.sandbox.file_exists("/tmp/d"))
            fork.sandbox.kill()
            sandbox.rewind(checkpoint_id=first.checkpoint_id)
            self.assertTrue(sandbox.file_exists("/tmp/d"))
            self.assertEqual([c.message_id for c in sandbox.checkpoints()], ["first"])
            with server.create_sandbox(sandbox.snapshot().snapshot_id) as copy:
                self.assertTrue(copy.file_exists("/tmp/d/moved"))
            self.assertEqual(sandbox.exec("cat; echo é >&2", stdin="in"), sandglass.ExecResult(True, 0, "in", "é\n", unittest.mock.ANY))
            self.assertEqual(sandbox.exec("kill -9 $$").exit_code, 137)
            self.assertRaises(sandglass.TimedOutError, sandbox.exec, "sleep 9", timeout_seconds=0.2)
            sandbox.set_network(policies.only("pypi.org"))
            self.assertEqual((sandbox.info().network or {})["allowOut"], ["pypi.org"])
            sandbox.pause()
            self.assertEqual(sandbox.info().state, "paused")
            sandbox.resume()
        with self.assertRaises(sandglass.UnavailableError) as told:
            sandbox.exec("true")
        self.assertEqual(told.exception.status, 502)
        self.assertRaises(sandglass.UnavailableError, sandbox.wait_for_port, 80, mode="http")

    def test_processes_and_sessions(self):
        with Sandglass() as server, server.create_sandbox() as sandbox:
            slow = sandbox.start("echo héllo; sleep 0.3; printf last", id="slow", cwd="/tmp")
            self.assertIsNone(slow.exit_code())
            self.assertEqual("".join(text for _, text in slow.output()), "héllo\nlast")
            self.assertEqual(slow.wait(), 0)
            cat = sandbox.start("cat", stdin=True)
            cat.send_input("said")
            cat.close_input()
            self.assertEqual((cat.wait(5), cat.logs()), (0, ("said", "")))
            with self.assertRaises(sandglass.ProcessExitedError) as told:
                sandbox.start("exit 4").wait_for_log("never")
            self.assertEqual(told.exception.exit_code, 4)
            self.assertRaises(sandglass.TimedOutError, sandbox.start("sleep 1").wait_for_log, "never", 0.2)
            self.assertRaises(sandglass.ProcessExitedError, sandbox.start("true").wait_for_port, 81)
            self.assertRaises(sandglass.ConflictError, sandbox.start, "true", id="slow")
            self.assertRaises(sandglass.InvalidError, sandbox.start, "true", id="../x")
            tree = server.get_sandbox(sandbox.id).start("sleep 97 & sleep 97", id="tree")
            tree.kill("SIGKILL")
            self.assertEqual(tree.wait(5), 137)
            self.assertIn("tree", [process.id for process in sandbox.list_processes()])
            with sandbox.session(envs={"Q": "it's"}) as shell:
                self.assertEqual(shell.exec("X=1; echo $Q").stdout, "it's\n")
                self.assertRaises(sandglass.TimedOutError, shell.exec, "sleep 9", timeout_seconds=0.3)
                self.assertEqual(shell.exec("echo $X; false"), sandglass.ExecResult(False, 1, "1\n", "", unittest.mock.ANY))
                self.assertEqual(sandbox.session(id=shell.id).exec("echo $X").stdout, "1\n")
                self.assertEqual(shell.exec("exit 9").exit_code, 9)
            self.assertRaises(sandglass.NotFoundError, shell.exec, "true")

    def test_contexts_programs_and_volumes(self):
        with Sandglass() as server, tempfile.TemporaryDirectory() as folder:
            context = server.get_or_create_context("py-all", "main", metadata={"a": "b"})
            self.assertEqual([c.id for c in server.list_contexts(conversation_id="py-all")], [context.id])
            self.assertIsNone(context.branch("lazy").context)
            self.assertEqual(sorted(path.path_id for path in server.list_paths("py-all")), ["lazy", "main"])
            context.touch(99)
            self.assertEqual(server.get_context(context.id).info.ttl_seconds, 99)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:  # one client, several threads
                self.assertEqual({r.sandbox_id for r in pool.map(context.run, ["1"] * 8)}, {context.info.sandbox_id})
            server.get_or_create_context("py-all", "lazy").merge_into("main")
            context.end()
            self.assertEqual(context.info.sandbox_status, "terminated")
            path = pathlib.Path(folder, "hello.js")
            path.write_text("console.log(require('fs').readFileSync('more.txt', 'utf8'))", encoding="utf-8")
            self.assertEqual(server.execute_file(path, files={"more.txt": "more"}).stdout, "more\n")
            slow = server.execute_code("while True: pass", timeout_seconds=1)
            self.assertEqual((slow.status, slow.exit_code), ("timeout", 124))

    def test_an_agent_behind_a_connection_that_breaks(self):
        way = Cut()
        with Sandglass(way.url) as server:
            agent, came = server.start_agent(ECHO), []
            with agent.connect() as line:
                line.send({"n": 0, "big": "x" * 200_000})
                for message in line:
                    came.append(message["n"])
                    if came[-1] == 9:
                        break
                    if came[-1] % 3 == 2:
                        way.cut()
                    line.send({"n": came[-1] + 1})
                self.assertEqual(came, list(range(10)))
                self.assertRaises(sandglass.ConflictError, agent.connect)
            agent.set_timeout(50)
            agent.stop()
            self.assertTrue(agent.logs() or agent.info.ended_at)


class Awaiting(unittest.IsolatedAsyncioTestCase):
    async def test_what_is_tried_again(self):
        fake = Scripted(BUSY, CHUNKED, LIMIT, PATHS, b"", PATHS, b"", None)
        async with AsyncSandglass(fake.url, "k", retries=1, request_timeout_seconds=0.5) as server:
            self.assertEqual(await server.list_paths("c"), [])
            with self.assertRaises(sandglass.LimitError):
                await server.list_paths("c")
            self.assertEqual(await server.list_paths("c"), [])
            self.assertEqual(await server.list_paths("c"), [])
            with self.assertRaises(sandglass.ConnectionFailedError):
                await server.clean_up("c")
            with self.assertRaises(sandglass.TimedOutError):
                await server.list_paths("c")

    async def test_what_is_cancelled_is_killed(self):
        async with AsyncSandglass() as server, await server.create_sandbox() as sandbox:
            begun = asyncio.Event()
            task = asyncio.create_task(sandbox.exec("echo on; exec sleep 98", on_stdout=lambda text: begun.set()))
            await begun.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            for _ in range(100):
                if not (await sandbox.exec('pgrep -f "sleep 9[8]"')).success:
                    break
            else:
                self.fail("it still runs")
            context = await server.get_or_create_context("py-cancel", "main")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(context.run("import time; time.sleep(98)"), 0.3)
            self.assertEqual((await context.run("1 + 1")).results[0].text, "2")
            self.assertEqual([c.id async for c in server.list_contexts(conversation_id="py-cancel")], [context.id])
            await context.end()

    async def test_an_agent_behind_a_connection_that_breaks(self):
        way = Cut()
        async with AsyncSandglass(way.url) as server:
            agent = await server.start_agent(ECHO)
            async with await agent.connect() as line:
                await line.send({"n": 0})
                async for message in line:
                    if message["n"] == 5:
                        break
                    way.cut()
                    await line.send({"n": message["n"] + 1})
            await agent.stop()


if __name__ == "__main__":
    unittest.main()
