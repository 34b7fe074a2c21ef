#!/usr/bin/python3 -B
"""SOCKS5 proxies that do not do what they should; the one that does is microsocks."""
import time

import world
from peers import Listeners
from record import Record

HANG_S = 600


def exactly(peer, n):
    data = b""
    while len(data) < n:
        piece = peer.sock.recv(n - len(data))
        if not piece:
            raise EOFError("the client has gone")
        data += piece
    return data


def greeting(peer):
    """Which methods the client offers."""
    return exactly(peer, exactly(peer, 2)[1])


def refuses_password(peer):
    greeting(peer)
    peer.sock.sendall(b"\5\2")
    name = exactly(peer, exactly(peer, 2)[1])
    exactly(peer, exactly(peer, 1)[0])
    peer.log("login", user=name.decode("latin-1"))
    peer.sock.sendall(b"\1\1")


def garbage(peer):
    peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def hangs(peer):
    greeting(peer)
    time.sleep(HANG_S)


def refuses(peer):
    greeting(peer)
    peer.sock.sendall(b"\5\0")
    exactly(peer, 4)
    peer.sock.sendall(b"\5\5\0\1\0\0\0\0\0\0")


def closes(peer):
    greeting(peer)


def no_method(peer):
    greeting(peer)
    peer.sock.sendall(b"\5\xff")


KINDS = {"refuses-password": refuses_password, "garbage": garbage, "hangs": hangs,
         "refuses": refuses, "closes": closes, "no-method": no_method}


def main():
    listeners = Listeners(Record("proxies"))
    for port, kind in world.BROKEN_PROXIES.items():
        listeners.tcp(world.PROXY, port, KINDS[kind])
    listeners.serve()


main()
