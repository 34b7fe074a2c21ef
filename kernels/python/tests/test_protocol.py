"""The control socket by itself, as bridges use it."""

import os
import socket
import sys
import unittest

from harness import KERNEL

sys.path.insert(0, KERNEL)

from _sandglass import protocol  # noqa: E402


class Packets(unittest.TestCase):
    def setUp(self):
        self.agent, self.kernel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.agent.close)
        self.addCleanup(self.kernel.close)
        self.control = protocol.Control(self.kernel.fileno())

    def packets(self, until=b"r"):
        got = []
        while not got or got[-1][:1] != until:
            got.append(self.agent.recv(1 << 18))
        return got

    def begin(self):
        self.agent.send(b"X\x01\0\0\0code")
        self.assertEqual(self.control.recv(), ("X", b"\x01\0\0\0code"))

    def test_result(self):
        self.begin()
        self.control.send_result("m", {"html": "<b>", "text": "t", "json": [1], "png": None})
        self.assertEqual(self.packets(), [b"Rm", b"Ttext\0t", b"Thtml\0<b>", b"Jjson\0[1]", b"r"])

    def test_nothing_outside_of_a_cell(self):
        self.assertFalse(self.control.send_result("d", {"text": "lost"}))
        self.begin()
        self.control.finished(1)
        self.assertFalse(self.control.send_result("d", {"text": "lost"}))
        self.assertEqual(self.packets(b"F"), [b"F\x01\0\0\0"])

    def test_end(self):
        self.agent.close()
        self.assertEqual(self.control.recv(), ("", b""))

    def test_largest_packet(self):
        self.agent.send(b"C" + b"x" * (128 * 1024 + 15))
        self.assertEqual(len(self.control.recv()[1]), 128 * 1024 + 15)

    def test_pieces_end_between_characters(self):
        fields = dict(protocol_text="€" * 60000, text="")
        pieces = protocol.prepare("m", fields)
        self.assertEqual(len(pieces[1][2]), 180000)
        self.begin()
        pid = os.fork()
        if pid == 0:
            self.control.pid = os.getpid()
            self.control.send_result("m", fields)
            os._exit(0)
        got = [p for p in self.packets() if p.startswith(b"Tprotocol_text\0")]
        os.waitpid(pid, 0)
        self.assertEqual("".join(p[15:].decode() for p in got), "€" * 60000)
        self.assertTrue(all(len(p) <= 65536 for p in got))

    def test_close_on_exec(self):
        self.assertFalse(os.get_inheritable(self.kernel.fileno()))

    def test_child_is_silent(self):
        self.begin()
        pid = os.fork()
        if pid == 0:
            os._exit(0 if not self.control.send_result("d", {"text": "x"}) else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


class Preparing(unittest.TestCase):
    def fields(self, kind, fields):
        return {key.decode(): data for _, key, data in protocol.prepare(kind, fields)}

    def test_json_is_strict(self):
        self.assertEqual(protocol.to_json({"a": float("nan"), 1: [float("inf")]}), b'{"a":null,"1":[null]}')

    def test_json_with_surrogates(self):
        self.assertEqual(protocol.to_json("\ud800"), b'"\\\\ud800"')

    def test_json_of_objects(self):
        self.assertEqual(protocol.to_json([{1}]), b'["{1}"]')

    def test_json_too_deep(self):
        deep = []
        for _ in range(100000):
            deep = [deep]
        self.assertIn(b"json left out: RecursionError", self.fields("m", {"json": deep})["text"])

    def test_json_too_large(self):
        got = self.fields("m", {"text": "t", "json": "x" * (9 << 20)})
        self.assertEqual(got, {"text": b"t\n<json of 9437186 bytes left out: the limit is 8388608>"})

    def test_all_together_too_large(self):
        got = self.fields("m", {"text": "t", "html": "h" * (20 << 20), "svg": "s" * (20 << 20)})
        self.assertEqual(sorted(got), ["html", "text"])
        self.assertIn(b"<svg of 20971520 bytes left out", got["text"])

    def test_text_too_large(self):
        got = self.fields("m", {"text": "x" * 104857600})
        self.assertEqual(got["text"], b"<text of 104857600 bytes left out: the limit is 33554432>")

    def test_never_beyond(self):
        size = 32 << 20
        for extra in range(-70000, 100, 6990):
            got = self.fields("m", {"text": "x" * (size + extra)})
            total = sum(len(k) + 2 + len(v) for k, v in got.items()) + 600 * 10
            self.assertLess(total, size)

    def test_error_is_cut(self):
        got = self.fields("e", {"name": "E", "value": "v" * (3 << 20), "traceback": "t" * (3 << 20)})
        self.assertIn(b"characters left out", got["value"])
        self.assertLess(sum(map(len, got.values())), 3 << 20)


if __name__ == "__main__":
    unittest.main()
