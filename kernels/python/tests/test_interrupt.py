"""SIGINT: ends the cell that runs, and nothing else."""

import os
import signal
import time
import unittest

from harness import KernelTest


class Interrupt(KernelTest):
    def interrupted(self, code):
        if "'go'" not in code:
            code = "print('go')\n" + code
        cell = self.run_cell(code, interrupt_when="go")
        self.assertIsNotNone(cell.error, cell.events)
        self.assertEqual(cell.error["name"], "KeyboardInterrupt")
        self.assertNotIn("_sandglass", cell.error["traceback"])
        self.assertEqual(self.value("'alive'"), "alive")
        return cell.error["traceback"]

    # What these look for in the traceback is in one line with the print: the signal may hit either.

    def test_loop(self):
        text = self.interrupted("n = 0\nwhile True: n = n or print('go') or 1")
        self.assertIn("while True", text)

    def test_sleep(self):
        self.assertIn("line 2", self.interrupted("import time\nprint('go'); time.sleep(60)"))

    def test_await(self):
        text = self.interrupted("import asyncio\nprint('go'); await asyncio.sleep(60)")
        self.assertIn("line 2", text)
        self.assertNotIn("CancelledError", text)

    def test_loop_inside_a_coroutine(self):
        self.interrupted("import asyncio\nawait asyncio.sleep(0)\nwhile True: pass")

    def test_gather(self):
        self.interrupted("import asyncio\nawait asyncio.gather(*[asyncio.sleep(60) for _ in range(3)])")

    def test_asyncio_run(self):
        self.interrupted("import asyncio\nasyncio.run(asyncio.sleep(60))")

    def test_import(self):
        """Interrupted at any moment of the import, it works at the next try."""
        for delay in range(1, 60, 6):
            kernel = self.own()
            kernel.start("import asyncio, email.mime.text, xml.dom.minidom, http.server\n"
                         "while True: pass")
            time.sleep(delay / 1000)
            cell = kernel.interrupt_until_it_ends(every=1)
            self.assertEqual(cell.error["name"], "KeyboardInterrupt")
            cell = kernel.run("import asyncio, email.mime.text, xml.dom.minidom, http.server\n"
                              "print('go')\nawait asyncio.sleep(60)", interrupt_when="go")
            self.assertEqual(cell.error["name"], "KeyboardInterrupt", cell.error["traceback"])

    def test_repr(self):
        self.interrupted("class R:\n    def __repr__(self):\n        while True: pass\nR()")

    def test_display(self):
        self.interrupted("class R:\n    def _repr_html_(self):\n        while True: pass\n"
                         "display(R())")

    def test_str_of_an_exception(self):
        cell = self.run_cell(
            "class E(Exception):\n    def __str__(self):\n        print('go')\n"
            "        while True: pass\nraise E",
            interrupt_when="go",
        )
        self.assertIsNotNone(cell.error)
        self.assertEqual(self.value("1"), "1")

    def test_program(self):
        self.interrupted("import subprocess; subprocess.run(['sleep', '60'])")

    def test_shell(self):
        self.interrupted("!sleep 60")

    def test_program_that_ignores_it(self):
        self.interrupted("!trap '' INT; sleep 60")

    def test_lock(self):
        self.interrupted("import threading\nl = threading.Lock()\nl.acquire()\nl.acquire()")

    def test_endless_output(self):
        cell = self.run_cell("print('go')\nwhile True: print('y' * 1000)", interrupt_when="go")
        self.assertEqual(cell.error["name"], "KeyboardInterrupt")

    def test_can_be_caught(self):
        cell = self.run_cell(
            "import time\ntry:\n    print('go')\n    time.sleep(60)\nexcept KeyboardInterrupt:\n"
            "    r = 'caught'\nr",
            interrupt_when="go",
        )
        self.assertEqual(cell.text, "caught")

    def test_between_cells_it_does_nothing(self):
        for _ in range(20):
            self.kernel.interrupt()
            time.sleep(0.01)
            self.assertEqual(self.value("2"), "2")

    def test_right_after_the_cell_was_sent(self):
        for _ in range(10):
            self.kernel.start("while True: pass")
            cell = self.kernel.interrupt_until_it_ends()
            self.assertEqual(cell.error["name"], "KeyboardInterrupt")

    def test_signal_for_the_cell_before(self):
        """The next cell is sent right after a signal that came too late: it is not hit."""
        for _ in range(50):
            self.kernel.interrupt()
            self.assertEqual(self.value("2"), "2")

    def test_storm(self):
        """Many signals at any time at all: the protocol stays in order."""
        for round_ in range(10):
            self.kernel.start("for i in range(300):\n    display('x' * 5000)\n    print(i)")
            for _ in range(20):
                self.kernel.interrupt()
                time.sleep(0.0003 * round_)
            self.kernel.finish()
        time.sleep(0.05)
        self.assertEqual(self.value("'alive'"), "alive")

    def test_handler_of_the_cell(self):
        kernel = self.own()
        kernel.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL);")
        kernel.interrupt()
        time.sleep(0.05)
        self.assertEqual(kernel.run("3").text, "3")
        cell = kernel.run("print('go')\nwhile True: pass", interrupt_when="go")
        self.assertEqual(cell.error["name"], "KeyboardInterrupt")

    def test_thread_goes_on(self):
        kernel = self.own()
        cell = kernel.run(
            "import threading, time\nn = 0\ndef work():\n    global n\n    while True:\n"
            "        n += 1\n        time.sleep(0.001)\n"
            "threading.Thread(target=work, daemon=True).start()\nprint('go')\ntime.sleep(60)",
            interrupt_when="go",
        )
        self.assertEqual(cell.error["name"], "KeyboardInterrupt")
        self.assertEqual(kernel.run("a = n\ntime.sleep(0.05)\nn > a").text, "True")

    def test_task_is_gone_afterwards(self):
        kernel = self.own()
        kernel.run("import asyncio\nprint('go')\nawait asyncio.sleep(60)", interrupt_when="go")
        self.assertEqual(kernel.run("await asyncio.sleep(0)\nlen(asyncio.all_tasks())").text, "1")


class Death(KernelTest):
    def test_exit_at_once(self):
        kernel = self.own()
        self.assertTrue(kernel.run("print('x')\nimport os\nos._exit(3)").died)
        self.assertEqual(kernel.process.wait(10), 3)

    def test_kill(self):
        kernel = self.own()
        self.assertTrue(kernel.run("import os\nos.kill(os.getpid(), 9)").died)
        self.assertEqual(kernel.process.wait(10), -signal.SIGKILL)

    def test_ends_with_the_agent(self):
        kernel = self.own()
        kernel.run("import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()")
        kernel.control.close()
        self.assertEqual(kernel.process.wait(10), 0)

    def test_atexit_runs(self):
        kernel = self.own()
        kernel.run("import atexit, os\natexit.register(lambda: os.write(1, b'bye'));")
        kernel.control.close()
        self.assertEqual(kernel.process.wait(10), 0)
        self.assertEqual(os.read(kernel.out, 10), b"bye")


if __name__ == "__main__":
    unittest.main()
