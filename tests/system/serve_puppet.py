#!/usr/bin/python3
"""A front or guard that does nothing by itself: it hands its socket to the test that connects to it, and
ends when that hangs up, or the warden before."""
import os
import select
import socket
import sys

if sys.argv[1:]:  # a worker, which nobody plays
    poll = select.poll()
    poll.register(3, select.POLLHUP)
    poll.poll()
    os._exit(0)

PATH = f"puppet.{os.getpid()}"

if os.path.basename(os.getcwd()) == "front" and not os.path.exists("server.db"):
    # As much of a database as the warden looks at: a state directory that was used has one.
    with open("server.db", "wb") as file:
        file.write(bytes(68) + b"test" + bytes(28))

listener = socket.socket(socket.AF_UNIX)
listener.bind(PATH + ".new")
listener.listen()
os.rename(PATH + ".new", PATH)
poll = select.poll()
poll.register(3, select.POLLHUP)
poll.register(listener, select.POLLIN)
if any(fd == 3 for fd, _ in poll.poll()):
    os._exit(0)
connection, _ = listener.accept()
os.unlink(PATH)
socket.send_fds(connection, [b"o"], [3])
os.close(3)
connection.recv(1)
