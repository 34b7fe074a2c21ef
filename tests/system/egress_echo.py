#!/usr/bin/python3
"""A guard for `sandglass run` that connects nobody to anywhere: it says where each connection and
datagram was meant to go, and for port 7 what it was told about the sandbox."""
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import egress_lib as wire  # noqa: E402


class Echo(wire.Sandbox):
    def accept(self):
        connection, _ = self.tcp.accept()
        target = self.target(connection)
        if target[1] == 7:
            connection.sendall(self.guard.settings + self.document)
        elif target[1] == 9:
            os._exit(9)
        else:
            connection.sendall(b"%s %d" % (target[0].encode(), target[1]))
        connection.close()


def main():
    guard = wire.Guard(socket.socket(fileno=3))
    sandboxes = {}
    guard.settings = os.read(guard.take(wire.SETTINGS).fds[0], 65536)
    while True:
        m = guard.take(wire.SANDBOX, wire.GONE, patience=3600)
        if m.what == wire.SANDBOX:
            sandboxes[m.id, m.life] = Echo(guard, m).serve()
        else:
            sandboxes.pop((m.id, m.life)).close()


try:
    main()
except EOFError:
    os._exit(0)
