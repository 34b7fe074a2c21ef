"""--once: one file as one cell, without the protocol."""

import json
import os
import subprocess
import tempfile
import unittest

from harness import KERNEL, PYTHON


class Once(unittest.TestCase):
    def once(self, code, *arguments, stdin=""):
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(code.encode())
            file.flush()
            return subprocess.run(
                [PYTHON, KERNEL, "--once", file.name, *arguments],
                input=stdin, capture_output=True, text=True, timeout=60,
            )

    def test_value(self):
        done = self.once("print('a')\n1 + 1")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("a\n2\n", "", 0))

    def test_no_value(self):
        self.assertEqual(self.once("x = 1").stdout, "")

    def test_display_in_order(self):
        self.assertEqual(self.once("print(1)\ndisplay(2)\nprint(3)\n!echo 4\n5").stdout, "1\n2\n"
                                                                                         "3\n4\n"
                                                                                         "5\n")

    def test_error(self):
        done = self.once("1/0")
        self.assertEqual((done.stdout, done.returncode), ("", 1))
        self.assertIn("Cell In[1], line 1", done.stderr)
        self.assertNotIn("_sandglass", done.stderr)

    def test_status(self):
        for code, status in (("import sys; sys.exit(3)", 3), ("exit()", 0), ("sys = __import__('sys'); sys.exit('m')", 1)):
            done = self.once(code)
            self.assertEqual(done.returncode, status)
            self.assertEqual(done.stderr, "m\n" if status == 1 else "")

    def test_stdin(self):
        self.assertEqual(self.once("input() + '!'", stdin="typed\n").stdout, "typed!\n")
        self.assertEqual(self.once("import sys\nlen(sys.stdin.read())", stdin="1234").stdout, "4\n")

    def test_threads_are_waited_for(self):
        done = self.once("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()")
        self.assertEqual(done.stdout, "late\n")

    def test_results(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results")
            self.once("display('shown')\n{'a': 1}", "--results", path)
            with open(path) as file:
                results = [json.loads(line) for line in file]
        self.assertEqual(results[0], {"main": False, "text": "shown"})
        self.assertEqual(results[1], {"main": True, "text": "{'a': 1}", "json": {"a": 1}})

    def test_await(self):
        self.assertEqual(self.once("import asyncio\nawait asyncio.sleep(0, 7)").stdout, "7\n")

    def test_no_such_file(self):
        done = subprocess.run([PYTHON, KERNEL, "--once", "/no/such"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_usage(self):
        for arguments in (["--once"], ["--nonsense"], ["--zygote", "--imports"], ["--once", "a", "--results"]):
            done = subprocess.run([PYTHON, KERNEL, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    unittest.main()
