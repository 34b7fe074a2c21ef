"""The interpreter's process, without an interpreter."""
import os
import sys
import threading
import types
import unittest

from harness import PROGRAM as BRIDGE

sys.path[:0] = [str(BRIDGE.parent), str(BRIDGE.parent / "python")]
from bridge.child import Child  # noqa: E402

# Says that it is there, and when the interrupt has come; blocks interrupts until it is told not to.
PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"came"))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.write(1, b"here")
os.read(0, 1)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
os.read(0, 1)
"""


class Settle(unittest.TestCase):
    def setUp(self):
        ends = [os.pipe() for _ in range(4)]
        (stdin, self.to), (self.of, stdout), (interrupts, _), (control, _) = ends
        self.addCleanup(lambda: [os.close(fd) for pair in ends for fd in pair])
        bridge = types.SimpleNamespace(interrupts=types.SimpleNamespace(fd=interrupts),
                                       control=types.SimpleNamespace(fd=control))
        self.child = Child(bridge, [sys.executable, "-c", PROGRAM], ((stdin, 0), (stdout, 1)))
        self.addCleanup(self.child.reap)
        self.addCleanup(self.child.kill)
        self.assertEqual(os.read(self.of, 4), b"here")

    def test_an_interrupt_on_its_way_is_waited_for(self):
        self.child.interrupt()
        waiter = threading.Thread(target=self.child.settle, args=(60,))
        waiter.start()
        waiter.join(0.1)
        self.assertTrue(waiter.is_alive())
        os.write(self.to, b"1")
        waiter.join()
        os.set_blocking(self.of, False)
        self.assertEqual(os.read(self.of, 4), b"came")

    def test_who_always_blocks_interrupts_is_waited_for_once(self):
        self.child.settle(0)
        before = threading.active_count()
        waiter = threading.Thread(target=self.child.settle, args=(60,), daemon=True)
        waiter.start()
        waiter.join(30)
        self.assertFalse(waiter.is_alive())
        self.assertEqual(threading.active_count(), before)

    def test_one_that_has_ended(self):
        self.child.kill()
        os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOWAIT)
        self.child.settle(60)


if __name__ == "__main__":
    unittest.main()
