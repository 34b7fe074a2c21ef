"""Copies of a kernel that ran: what they keep, what is new, and what is mended."""

import os
import socket
import tempfile
import unittest

from harness import KERNEL, PYTHON, Kernel

# A zygote that is born, and forks when it is told to: the child has new ends for 1, 2 and 3 and what was
# the same as these, the regular files that were open, and nothing else; nobody tells Python that there
# was a fork. This is what a warden does from the outside.
PROGRAM = f"""
import sys
sys.argv = [""]
sys.path.insert(0, {KERNEL!r})
import ctypes, os, socket, stat
from _sandglass import kernel, protocol
libc, read = ctypes.CDLL(None), protocol.Control.recv
def become(folder):
    first = [os.fstat(fd)[1:3] for fd in range(4)]
    same = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            found = os.fstat(fd)
            if fd > 3 and found[1:3] in first:
                same.append((fd, first.index(found[1:3])))
            if fd > 3 and not stat.S_ISREG(found.st_mode):
                os.close(fd)
        except OSError:
            pass
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.connect(folder + "/control")
    os.dup2(control.detach(), 3, False)
    for fd, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder + "/" + name, os.O_WRONLY), fd)
    for number in (10, 12, 15):
        libc.signal(number, None)
    os.setsid()
    for fd in range(4, 20):
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
        except OSError:
            pass
    for fd, one in same:
        os.dup2(one, fd, False)
def recv(self):
    kind, payload = read(self)
    while kind == "!":
        if libc.fork() == 0:
            become(payload.decode())
        kind, payload = read(self)
    return kind, payload
protocol.Control.recv = recv
kernel.main(["--zygote", "--imports", sys.orig_argv[-1]])
"""


SERVER = """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), H)
print(s.server_address[1], flush=True)
s.serve_forever()
"""
GET = "c.request('GET', '/')\nc.getresponse().read()"


class Copy(Kernel):
    """One that was made from another, with the agent's ends of what it has."""

    def __init__(self, source):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("out", "err"):
                os.mkfifo(f"{folder}/{name}")
            self.out, self.err = (os.open(f"{folder}/{n}", os.O_RDONLY | os.O_NONBLOCK) for n in ("out", "err"))
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
                door.bind(f"{folder}/control")
                door.listen()
                door.settimeout(60)
                source.send("!", folder)
                self.control, _ = door.accept()
            self.number = source.number
            self.send("Y")
            self.woke = self._collect()
            assert not self.woke.died, self.woke.err

    def close(self):
        self.control.close()
        os.close(self.out)
        os.close(self.err)

    def interrupt(self):
        os.kill(self.pid, 2)


class CopyTest(unittest.TestCase):
    imports = "standard"

    def born(self):
        kernel = Kernel(self.imports, program=(PYTHON, "-c", PROGRAM))
        self.addCleanup(kernel.close)
        kernel.send("B", "python")
        kernel.wait_ready()
        for variable in ("HOME=/tmp", "PATH=/usr/bin:/bin"):
            kernel.send("G", variable)
        return kernel

    def copy(self, source):
        copy = Copy(source)
        self.addCleanup(copy.close)
        return copy

    def value(self, kernel, code):
        cell = kernel.run(code)
        self.assertIsNone(cell.error, cell.error)
        return cell.text


class Kept(CopyTest):
    def test_variables_of_the_new_sandbox(self):
        kernel = self.born()
        for variable in ("ID=source", "SHAPE=round", "GONE=1"):
            kernel.send("G", variable)
        kernel.run("import os\nos.environ['SHAPE'] = 'square'\ndel os.environ['GONE']")
        copy = self.copy(kernel)
        for variable in ("ID=copy", "SHAPE=oval", "GONE=2", "NEW=3"):
            copy.send("G", variable)
        seen = "[os.environ.get(k) for k in ('ID', 'SHAPE', 'GONE', 'NEW')]"
        self.assertEqual(self.value(copy, seen), "['copy', 'square', None, '3']")
        self.assertEqual(self.value(kernel, seen), "['source', 'square', None, None]")

    def test_variables_and_history(self):
        kernel = self.born()
        kernel.run("import json\nx = [1, 2]\ndef f(): return len(x)\ng = (i for i in range(9))\nnext(g)")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "x.append(3)\n(f(), next(g), json.dumps(x), len(In), _)"),
                         "(3, 1, '[1, 2, 3]', 3, 0)")
        self.assertEqual(self.value(kernel, "f()"), "2")

    def test_environment_and_files(self):
        kernel = self.born()
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("one\ntwo\nthree\n")
            file.flush()
            kernel.run(f"import os\nos.environ['A'] = 'b'\nos.chdir('/usr')\nf = open({file.name!r})\nf.readline()")
            copy = self.copy(kernel)
            self.assertEqual(self.value(copy, "os.environ['A'], os.getcwd(), f.readline()"), "('b', '/usr', 'two\\n')")
            cell = copy.run("!echo $A; pwd")
            self.assertEqual(cell.out, "b\n/usr\n")

    def test_generators_of_the_user(self):
        kernel = self.born()
        kernel.run("import random\nr = random.Random(42)\nr.random()")
        copies = [self.copy(kernel) for _ in range(2)]
        drawn = {self.value(k, "r.random()") for k in (kernel, *copies)}
        self.assertEqual(len(drawn), 1)

    def test_a_copy_of_a_copy(self):
        kernel = self.born()
        kernel.run("import os")
        descriptors = self.value(kernel, "sorted(os.listdir('/proc/self/fd'))")
        for level in range(4):
            kernel.run(f"x{level} = {level}")
            kernel = self.copy(kernel)
        self.assertEqual(self.value(kernel, "x0, x1, x2, x3"), "(0, 1, 2, 3)")
        self.assertEqual(self.value(kernel, "sorted(os.listdir('/proc/self/fd'))"), descriptors)


class Process(CopyTest):
    def test_output_and_streams(self):
        kernel = self.born()
        kernel.run("import os, sys")
        copy = self.copy(kernel)
        cell = copy.run("print('o')\nprint('e', file=sys.stderr)\n!echo p")
        self.assertEqual((cell.out, cell.err), ("o\np\n", "e\n"))
        # descriptors that a cell closes come back, from the copy's own spares
        copy.run("for i in (0, 1, 2, 3): os.close(i)")
        self.assertEqual(copy.run("print(1)").out, "1\n")
        self.assertEqual(kernel.run("print(2)").out, "2\n")

    def test_interrupt(self):
        kernel = self.born()
        kernel.run("import os")
        copy = self.copy(kernel)
        copy.pid = int(self.value(copy, "os.getpid()"))
        for code in ("print('go')\nwhile True: pass", "import asyncio\nprint('go')\nawait asyncio.sleep(100)"):
            cell = copy.run(code, interrupt_when="go")
            self.assertEqual(cell.error["name"], "KeyboardInterrupt")
        self.assertEqual(self.value(copy, "1"), "1")

    def test_signal_handlers(self):
        kernel = self.born()
        kernel.run("import os, signal\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n"
                   "signal.signal(signal.SIGUSR2, signal.SIG_IGN)")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "os.kill(os.getpid(), signal.SIGUSR1)\nos.kill(os.getpid(), signal.SIGUSR2)\ngot"), "[1]")

    def test_threads_and_locks(self):
        kernel = self.born()
        kernel.run("import logging, threading\nt = threading.Thread(target=print)\nt.start()\nt.join()")
        copy = self.copy(kernel)
        self.assertEqual(
            self.value(copy, "a = []\nt = threading.Thread(target=a.append, args=(1,))\nt.start()\nt.join()\n"
                             "logging.warning('x')\na, threading.main_thread() is threading.current_thread()"),
            "([1], True)")

    def test_children_are_gone(self):
        kernel = self.born()
        kernel.run("import subprocess\np = subprocess.Popen(['sleep', '100'], stdout=subprocess.PIPE)")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "p.poll(), p.stdout.read()"), "(-9, b'')")
        self.assertEqual(self.value(copy, "subprocess.check_output(['echo', 'x'])"), "b'x\\n'")
        kernel.run("p.kill()\np.wait()")

    def test_hook(self):
        kernel = self.born()
        kernel.run("def __on_fork__():\n    global forked\n    forked = True\n    print('hello')\n    1/0")
        copy = self.copy(kernel)
        self.assertEqual(copy.woke.out, "hello\n")
        self.assertRegex(copy.woke.err, r"(?s)^Traceback.*line 5, in __on_fork__\n.*ZeroDivisionError: .*\n$")
        self.assertEqual(copy.run("forked").text, "True")
        self.assertEqual(kernel.run("'forked' in globals()").text, "False")


class Mended(CopyTest):
    def test_event_loop(self):
        kernel = self.born()
        kernel.run("import asyncio\nasync def later():\n    await asyncio.sleep(0.3)\n    return 'late'\n"
                   "t = asyncio.create_task(later())\nawait asyncio.sleep(0)")
        copy = self.copy(kernel)
        for one in (copy, kernel):
            self.assertEqual(self.value(one, "await t"), "late")
            self.assertEqual(self.value(one, "await asyncio.to_thread(lambda: 5)"), "5")

    def test_loops_of_the_user(self):
        kernel = self.born()
        kernel.run("import asyncio, os, signal\nloop = asyncio.new_event_loop()\n"
                   "loop.add_signal_handler(signal.SIGUSR1, lambda: loop.stop())\n"
                   "loop.run_until_complete(asyncio.sleep(0))")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "loop.call_later(0.05, os.kill, os.getpid(), signal.SIGUSR1)\n"
                                          "loop.call_later(20, exit)\nloop.run_forever()\nloop.close()\n'ok'"), "ok")

    def test_connection_of_a_loop(self):
        """Who waits for a peer that is gone is told so."""
        kernel = self.born()
        kernel.run("import asyncio\nasync def echo(r, w):\n    w.write(await r.readline())\n"
                   "server = await asyncio.start_server(echo, '127.0.0.1', 0)\n"
                   "r, w = await asyncio.open_connection(*server.sockets[0].getsockname())\n"
                   "t = asyncio.create_task(r.readline())\nawait asyncio.sleep(0.05)")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "await asyncio.wait_for(t, 20)"), "b''")
        self.assertEqual(self.value(kernel, "w.write(b'x\\n')\nawait asyncio.wait_for(t, 20)"), "b'x\\n'")
        # and nothing keeps the loop of the copy busy
        self.assertEqual(self.value(copy, "import time\na = time.process_time()\nawait asyncio.sleep(0.5)\n"
                                          "time.process_time() - a < 0.3"), "True")

    def test_sockets(self):
        kernel = self.born()
        kernel.run("import os, socket\na, b = socket.socketpair()")
        copy = self.copy(kernel)
        self.assertEqual(self.value(copy, "a.recv(1)"), "b''")
        self.assertEqual(copy.run("a.send(b'x')").error["name"], "BrokenPipeError")
        # their numbers are theirs until they are closed
        self.assertEqual(self.value(copy, "f = open('/dev/null')\nn = f.fileno() in (a.fileno(), b.fileno())\n"
                                          "del a, b\nn, os.fstat(f.fileno()).st_mode > 0"), "(False, True)")
        self.assertEqual(self.value(kernel, "a.send(b'x')\nb.recv(1)"), "b'x'")

    def test_connections_that_are_kept(self):
        """A library finds the server gone, and connects again."""
        kernel = self.born()
        kernel.run(f"import http.client, subprocess, sys\n"
                   f"server = subprocess.Popen([sys.executable, '-c', {SERVER!r}], stdout=subprocess.PIPE)\n"
                   f"c = http.client.HTTPConnection('127.0.0.1', int(server.stdout.readline()))\n{GET}")
        copy = self.copy(kernel)
        self.assertEqual(copy.run(GET).error["name"], "BrokenPipeError")
        self.assertEqual(self.value(copy, f"c.close()\n{GET}"), "b'ok'")
        self.assertEqual(self.value(kernel, GET), "b'ok'")
        kernel.run(f"import requests\ns = requests.Session()\nurl = f'http://127.0.0.1:{{c.port}}'\ns.get(url)")
        copy = self.copy(kernel)
        for one in (copy, kernel):
            self.assertEqual(self.value(one, "s.get(url).text"), "ok")
        kernel.run("server.kill()\nserver.wait()")


DRAWN = """
import multiprocessing, random, secrets, ssl, tempfile, uuid
[str(x) for x in (
    random.random(), random.Random().random(), uuid.uuid1(), uuid.uuid1().node, uuid.uuid4(), tempfile.mktemp(),
    next(tempfile._get_candidate_names()), ssl.RAND_bytes(8).hex(), secrets.token_hex(8),
    bytes(multiprocessing.current_process().authkey).hex())]
"""
DRAWN_BY_NUMPY = """
import numpy
[str(x) for x in (numpy.random.rand(), numpy.random.randn(), numpy.random.default_rng().random())]
"""


class New(CopyTest):
    code = DRAWN

    def test_no_randomness_is_shared(self):
        kernel = self.born()
        kernel.run(self.code)  # all of it was in use
        drawn = [eval(self.value(k, self.code)) for k in (kernel, *(self.copy(kernel) for _ in range(6)))]
        for position, values in enumerate(zip(*drawn)):
            self.assertEqual(len(set(values)), 7, f"value {position}: {values}")


class NewForScience(New):
    imports = "science"
    code = DRAWN_BY_NUMPY

    def test_generators_of_the_user(self):
        kernel = self.born()
        kernel.run("import numpy\nr = numpy.random.default_rng(42)\ns = numpy.random.RandomState(1)\nr.random()")
        copies = [self.copy(kernel) for _ in range(2)]
        drawn = {self.value(k, "r.random(), s.rand()") for k in (kernel, *copies)}
        self.assertEqual(len(drawn), 1)


del CopyTest

if __name__ == "__main__":
    unittest.main()
