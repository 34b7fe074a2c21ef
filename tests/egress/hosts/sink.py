#!/usr/bin/python3 -B
"""The attacker's other ports: takes everything, counts it, and answers so that who sent it can tell."""
import world
from peers import Listeners
from record import Record

HEAD = 256  # of what came is on record
ANSWER = b"got it\n"


def take(peer):
    head = b""
    peer.sock.sendall(ANSWER)
    while piece := peer.sock.recv(65536):
        if len(head) < HEAD:
            head += piece
            peer.log("stolen", head=head[:HEAD].decode("latin-1"))


def main():
    listeners = Listeners(Record("sink"))
    for address, ports in world.SINK.items():
        for port in ports:
            listeners.tcp(address, port, take)
    for address, ports in world.SINK_UDP.items():
        for port in ports:
            listeners.udp(address, port, lambda data, answer: answer(ANSWER))
    listeners.serve()


main()
