#!/usr/bin/python3 -B
"""A server that speaks first, as SSH, SMTP and databases do: a client that waits for it says nothing."""
import world
from peers import Listeners
from record import Record

BANNER = b"SSH-2.0-bed\r\n"


def greet(peer):
    peer.sock.sendall(BANNER)
    said = peer.sock.recv(256)
    peer.log("client", says=said.decode("latin-1"))
    while peer.sock.recv(65536):
        pass


def main():
    listeners = Listeners(Record("banner"))
    listeners.tcp(world.TALK, world.BANNER_PORT, greet)
    listeners.serve()


main()
