"""A zygote, and what comes out of it."""

import os
import socket
import struct
import unittest

from harness import Kernel, KernelTest


class Born(KernelTest):
    """A zygote that is told to be born without having been copied."""

    imports = ()

    @classmethod
    def setUpClass(cls):
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "SECRET": "s", "LANG": "C.UTF-8"}
        cls.kernel = Kernel("--zygote", *cls.imports, environment=environment)
        process = f"/proc/{cls.kernel.process.pid}"
        cls.open = sorted(os.listdir(process + "/fd"))
        cls.threads = os.listdir(process + "/task")
        cls.kernel.send("B", "python")
        cls.kernel.wait_ready()

    def test_has_only_its_four_descriptors(self):
        self.assertEqual(self.open, ["0", "1", "2", "3"])

    def test_has_one_thread(self):
        self.assertEqual(len(self.threads), 1)

    def test_environment_is_empty(self):
        kernel = self.own("--zygote", environment={"SECRET": "s", "PATH": "/usr/bin"})
        kernel.send("B", "python")
        kernel.wait_ready()
        self.assertEqual(kernel.run("import os\ndict(os.environ)").text, "{}")

    def test_first_cell(self):
        kernel = self.own("--zygote")
        kernel.send("B", "python")
        kernel.wait_ready()
        kernel.send("G", "HOME=/tmp")
        kernel.send("D", "/usr")
        cell = kernel.run("import os\nos.getcwd(), os.environ['HOME'], len(In), Out, _")
        self.assertEqual(cell.text, "('/usr', '/tmp', 2, {}, '')")

    def test_nothing_of_the_warm_up_is_left(self):
        kernel = self.own("--zygote", *self.imports)
        kernel.send("B", "python")
        kernel.wait_ready()
        self.assertEqual(kernel.run("[n for n in globals() if n[0] != '_']").text, "['In', 'Out']")
        self.assertEqual(kernel.run("import sys\nhasattr(sys, 'last_value')").text, "False")

    def test_bytecode_is_written(self):
        self.assertEqual(self.value("import sys\nsys.dont_write_bytecode"), "False")

    def test_standard_library_is_there(self):
        code = "import sys\n[m for m in ('json', 'asyncio', 'subprocess', 're', 'ssl') if m not in sys.modules]"
        self.assertEqual(self.value(code), "[]")

    def test_streams(self):
        cell = self.run_cell("import sys\nprint('o')\nprint('e', file=sys.stderr)\n!echo p")
        self.assertEqual((cell.out, cell.err), ("o\np\n", "e\n"))

    def test_path(self):
        self.assertEqual(self.value("import sys\n[p for p in sys.path if 'kernels' in p or '/root' in p]"), "[]")

    def test_interrupt(self):
        cell = self.run_cell("print('go')\nwhile True: pass", interrupt_when="go")
        self.assertEqual(cell.error["name"], "KeyboardInterrupt")

    def test_await(self):
        self.assertEqual(self.value("import asyncio\nawait asyncio.sleep(0, 1)"), "1")

    def test_another_language(self):
        kernel = self.own("--zygote")
        kernel.send("B", "bash")
        kernel.wait_ready()
        kernel.send("G", "PATH=/usr/bin:/bin")
        self.assertEqual(kernel.run("echo $((6 * 7))").out, "42\n")

    def test_unknown_import_is_left_out(self):
        kernel = self.own("--zygote", "--imports", "no_such_module,colorsys")
        kernel.send("B", "python")
        kernel.wait_ready()
        self.assertEqual(kernel.run("import sys\n'colorsys' in sys.modules").text, "True")

    def test_zygote_ends_with_its_maker(self):
        kernel = self.own("--zygote")
        kernel.control.close()
        self.assertEqual(kernel.process.wait(10), 0)


class BornForScience(Born):
    imports = ("--imports", "science")

    def test_libraries_are_there(self):
        code = "import sys\n[m for m in ('numpy', 'pandas', 'matplotlib.pyplot') if m not in sys.modules]"
        self.assertEqual(self.value(code), "[]")

    def test_figure(self):
        cell = self.run_cell("import matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.show()")
        self.assertIn("png", cell.shown[0])

    def test_frame(self):
        self.assertIn("html", self.run_cell("import pandas as pd\npd.DataFrame({'a': [1]})").main)

    def test_no_settings_are_left(self):
        code = "import os\n[k for k in os.environ if 'THREADS' in k or 'MPL' in k]"
        self.assertEqual(self.value(code), "[]")


class BornForWhatIsThere(BornForScience):
    imports = ("--imports", "auto")


# A zygote whose read of descriptor 3 makes copies of it, with sockets of their own. The twins of a
# warden are made from the outside; what must differ between them is the same.
COPIES = 8
FORKING = f"""
import os, socket, sys
sys.argv = ["", "--zygote"]
sys.path.insert(0, sys.orig_argv[-2])
from _sandglass import kernel, protocol
read, copied = protocol.Control.recv, []
def recv(self):
    if not copied and self.fd == 3:
        copied.append(True)
        for number in range({COPIES}):
            if os.fork() == 0:
                os.dup2(int(sys.orig_argv[-1]) + number, 3)
                os.closerange(4, 1000)
                break
        else:
            os.wait()
            os._exit(0)
    return read(self)
protocol.Control.recv = recv
import random, uuid, tempfile, ssl
kernel.main(["--zygote", "--imports", "science"])
"""

DRAWN = """
import multiprocessing, numpy, random, secrets, ssl, tempfile, uuid
[str(x) for x in (
    random.random(), random.Random().random(), numpy.random.rand(), numpy.random.default_rng().random(),
    uuid.uuid1(), uuid.uuid4(), tempfile.mktemp(), ssl.RAND_bytes(8).hex(), secrets.token_hex(8),
    bytes(multiprocessing.current_process().authkey).hex())]
"""


class Copies(unittest.TestCase):
    def test_share_no_randomness(self):
        from harness import KERNEL, PYTHON

        first = 60
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(COPIES)]
        pid = os.fork()
        if pid == 0:
            for number, (_, theirs) in enumerate(pairs):
                os.dup2(theirs.fileno(), first + number)
            null = os.open("/dev/null", os.O_RDWR)
            control, _other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            other = os.dup2(_other.fileno(), 59)
            os.dup2(control.fileno(), 3, True)
            for fd in (1, 2):
                os.dup2(null, fd)
            os.set_inheritable(other, True)
            os.execve(PYTHON, [PYTHON, "-c", FORKING, KERNEL, str(first)], {"PATH": "/usr/bin:/bin"})
        for _, theirs in pairs:
            theirs.close()
        drawn = []
        for ours, _ in pairs:
            ours.settimeout(60)
            ours.send(b"Bpython")
            self.assertEqual(ours.recv(10), b"Q")
            ours.send(b"X" + struct.pack("<I", 1) + DRAWN.encode())
            fields = {}
            while (packet := ours.recv(1 << 17))[:1] != b"F":
                if packet[:1] == b"J":
                    key, _, value = packet[1:].partition(b"\0")
                    fields[key] = eval(value)
            drawn.append(fields[b"json"])
        for ours, _ in pairs:
            ours.close()
        os.waitpid(pid, 0)
        for position, values in enumerate(zip(*drawn)):
            self.assertEqual(len(set(values)), COPIES, f"value {position}: {values}")


del KernelTest

if __name__ == "__main__":
    unittest.main()
