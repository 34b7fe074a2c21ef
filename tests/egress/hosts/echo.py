#!/usr/bin/python3 -B
"""Sends back what comes, over TCP and UDP."""
import world
from peers import Listeners
from record import Record


def echo(peer):
    while piece := peer.sock.recv(65536):
        peer.sock.sendall(piece)


def main():
    listeners = Listeners(Record("echo"))
    for address in (world.A, world.TALK, world.SIX):
        for port in world.ECHO_PORTS:
            listeners.tcp(address, port, echo)
            listeners.udp(address, port, lambda data, answer: answer(data))
    listeners.serve()


main()
