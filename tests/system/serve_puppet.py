#!/usr/bin/python3
"""A front that does nothing by itself: it hands its socket to the test that connects to it, and ends
when that hangs up."""
import os
import socket

PATH = f"puppet.{os.getpid()}"

listener = socket.socket(socket.AF_UNIX)
listener.bind(PATH + ".new")
listener.listen()
os.rename(PATH + ".new", PATH)
connection, _ = listener.accept()
os.unlink(PATH)
socket.send_fds(connection, [b"o"], [3])
os.close(3)
connection.recv(1)
