"""Standard output and error: everything arrives, in order, whoever wrote it."""

import os
import time
import unittest

from harness import KernelTest


def merged(cell):
    """Runs of the same stream as one: [('out', b'…'), ('err', b'…'), …]"""
    out = []
    for event in cell.events:
        if isinstance(event, tuple) and out and out[-1][0] == event[0]:
            out[-1] = (event[0], out[-1][1] + event[1])
        elif isinstance(event, tuple):
            out.append(event)
    return out


class Streams(KernelTest):
    def test_out_and_err(self):
        cell = self.run_cell("import sys\nprint('a')\nprint('b', file=sys.stderr)")
        self.assertEqual((cell.out, cell.err), ("a\n", "b\n"))

    def test_a_print_is_one_piece(self):
        cell = self.run_cell("print(1, 'two', [3], sep='-')")
        self.assertEqual(cell.events, [("out", b"1-two-[3]\n")])

    def test_print_behaves(self):
        cell = self.run_cell(
            "import io\nf = io.StringIO()\nprint('x', file=f)\nprint(end='')\n"
            "print('y', sep=None, end=None)\n"
            "print('z', flush=True)\nf.getvalue()"
        )
        self.assertEqual(cell.out, "y\nz\n")
        self.assertEqual(cell.text, "x\\n")
        self.assertEqual(self.fails("print(1, sep=2)", "TypeError")["name"], "TypeError")

    def test_order_between_the_two(self):
        cell = self.run_cell(
            "import sys\nfor i in range(20):\n    print(i)\n    print(-i, file=sys.stderr)"
        )
        expected = []
        for i in range(20):
            expected += [("out", b"%d\n" % i), ("err", b"%d\n" % -i)]
        self.assertEqual(merged(cell), expected)

    def test_order_with_programs(self):
        cell = self.run_cell(
            "import os, subprocess, sys\nprint('1', file=sys.stderr)\n"
            "subprocess.run(['echo', '2'])\n"
            "print('3', file=sys.stderr)\nos.system('echo 4')\nprint('5', file=sys.stderr)"
        )
        self.assertEqual(b"".join(t for _, t in merged(cell)), b"1\n2\n3\n4\n5\n")

    def test_order_with_c(self):
        cell = self.run_cell(
            "import ctypes\nc = ctypes.CDLL(None)\nprint('a', end='')\nc.printf(b'b')\n"
            "print('c', end='')\nc.puts(b'd')\n7"
        )
        self.assertEqual(cell.out, "abcd\n")
        self.assertEqual(cell.text, "7")

    def test_result_comes_after_the_output(self):
        cell = self.run_cell("import os\nos.write(1, b'raw')\n'value'")
        self.assertEqual(cell.events[0], ("out", b"raw"))

    def test_unbuffered(self):
        self.kernel.start("import time\nprint('now', end='')\ntime.sleep(0.4)\nprint('later')")
        time.sleep(0.2)
        self.assertEqual(os.read(self.kernel.out, 100), b"now")
        self.assertEqual(self.kernel.finish().out, "later\n")

    def test_bytes_that_are_no_utf8(self):
        cell = self.run_cell("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe\\n')")
        self.assertEqual(cell.events[0], ("out", b"\xff\xfe\n"))
        self.assertEqual(cell.text, "3")

    def test_buffer_and_text_in_order(self):
        cell = self.run_cell("import sys\nprint('a')\nsys.stdout.buffer.write(b'b\\n')\n"
                             "print('c');")
        self.assertEqual(cell.out, "a\nb\nc\n")

    def test_looks_like_a_stream(self):
        code = "import sys\n(sys.stdout.encoding, sys.stdout.fileno(), sys.stderr.fileno(), sys.stdout.isatty())"
        self.assertEqual(self.value(code), "('utf-8', 1, 2, False)")

    def test_threads(self):
        cell = self.run_cell(
            "import threading\n"
            "ts = [threading.Thread(target=lambda: print('t' * 50)) for _ in range(20)]\n"
            "[t.start() for t in ts]\n[t.join() for t in ts];"
        )
        self.assertEqual(cell.out, ("t" * 50 + "\n") * 20)

    def test_thread_that_is_left_running(self):
        kernel = self.own()
        kernel.run(
            "import threading, time\n"
            "def work():\n    while True:\n        time.sleep(0.01)\n        print('tick')\n"
            "        display('lost?')\n"
            "threading.Thread(target=work, daemon=True).start()"
        )
        time.sleep(0.1)
        cell = kernel.run("time.sleep(0.05)\n5")
        self.assertIn("tick", cell.out)
        self.assertEqual(cell.text, "5")

    def test_one_writer_does_not_slow_the_other_down(self):
        start = time.monotonic()
        cell = self.own().run(
            "import subprocess, sys\np = subprocess.Popen(['yes'])\n"
            "for i in range(300): print(i, file=sys.stderr)\np.kill()\np.wait();"
        )
        self.assertEqual(cell.err.split(), [str(i) for i in range(300)])
        self.assertLess(time.monotonic() - start, 20)

    def test_redirect(self):
        cell = self.run_cell(
            "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n"
            "    print('in')\nf.getvalue()"
        )
        self.assertEqual((cell.out, cell.text), ("", "in\\n"))


class Refused(KernelTest):
    def test_input(self):
        error = self.fails("input('name? ')", "StdinNotImplementedError")
        self.assertIn("input() is not available", error["value"])
        self.assertIn("environment", error["value"])
        self.assertNotIn("_sandglass", error["traceback"])

    def test_is_an_eof_error(self):
        self.assertEqual(self.value("try:\n    input()\nexcept EOFError:\n    e = 'eof'\ne"), "eof")

    def test_other_ways_to_read(self):
        for code in ("import sys; sys.stdin.read()", "import sys; sys.stdin.readline()",
                     "import sys\nfor line in sys.stdin: pass", "import sys; sys.stdin.buffer.read()"):
            self.fails(code, "StdinNotImplementedError")

    def test_program_sees_an_end(self):
        self.assertEqual(self.run_cell("!cat; echo done").out, "done\n")

    def test_debugger_ends(self):
        self.run_cell("breakpoint()")
        self.assertEqual(self.value("1"), "1")


if __name__ == "__main__":
    unittest.main()
