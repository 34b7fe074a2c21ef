#!/usr/bin/python3 -B
"""The web servers of the bed, all in one process: who answers depends on the address that was reached. With TLS the
certificate depends on the name that was asked for. Files of www/HOST/ first, then endpoints.py."""
import mimetypes
import os
import ssl
import sys

import endpoints
import world
from peers import Listeners
from record import Record
from request import Exchange, Request, read_head

DIRECTORY = sys.argv[1]
TEXT_MAX = 4096  # of a body is on record
HANDSHAKE_S = 20


def context(certificate):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(f"{DIRECTORY}/tls/{certificate}.pem", f"{DIRECTORY}/tls/host.key")
    c.set_alpn_protocols(["http/1.1"])
    return c


class Certificates:
    """By name, and by address for who gives none. Those that are wrong on purpose have names of their own."""

    def __init__(self):
        there = {f[:-4] for f in os.listdir(f"{DIRECTORY}/tls") if f.endswith(".pem") and "root" not in f}
        self.contexts = {name: context(name) for name in there}
        self.any = context("common")
        self.any.sni_callback = self.choose

    def choose(self, sock, name, _):
        sock.peer.sni = name
        sock.context = self.contexts["common"]
        for certificate, chosen in self.contexts.items():
            if f".{name}".endswith(f".{certificate}.test") or name is None and certificate == sock.peer.who:
                sock.context = chosen


class Web:
    def __init__(self):
        self.certificates = Certificates()
        listeners = Listeners(Record("web"))
        for address in world.WEB:
            for port in world.PLAIN_PORTS:
                listeners.tcp(address, port, self.plain)
            for port in world.TLS_PORTS:
                listeners.tcp(address, port, self.encrypted)
        listeners.serve()

    def plain(self, peer):
        peer.who, peer.sni, peer.tls = world.WEB[peer.local], None, None
        self.talk(peer)

    def encrypted(self, peer):
        peer.who, peer.sni = world.WEB[peer.local], None
        peer.sock.settimeout(HANDSHAKE_S)
        peer.sock = self.certificates.any.wrap_socket(peer.sock, server_side=True,
                                                      do_handshake_on_connect=False)
        peer.sock.peer = peer
        try:
            peer.sock.do_handshake()
        finally:
            peer.log("hello", sni=peer.sni)
        peer.sock.settimeout(None)
        peer.tls = peer.sock.version()
        self.talk(peer)

    def talk(self, peer):
        stream = peer.sock.makefile("rb")
        while raw := read_head(stream):
            request = Request(raw)
            peer.log("request", who=peer.who, sni=peer.sni, tls=bool(peer.tls), method=request.method,
                     target=request.target, headers=request.headers, head=request.raw)
            exchange = Exchange(peer, LoggedBody(peer, stream), request)
            if request.method == "CONNECT":
                exchange.answer(405, "no proxy", "text/plain")
            elif not serve_file(exchange):
                serve_endpoint(exchange)
            if not request.keeps_alive():
                return


class LoggedBody:
    """The stream of a connection; the beginning of what is read of a body is on record."""

    def __init__(self, peer, stream):
        self.peer, self.stream, self.left = peer, stream, TEXT_MAX

    def _note(self, data):
        if data and self.left > 0:
            self.peer.log("body", text=data[:self.left].decode("latin-1"))
            self.left -= len(data)
        return data

    def read(self, n):
        return self._note(self.stream.read(n))

    def read1(self, n):
        return self._note(self.stream.read1(n))

    def readline(self):
        return self.stream.readline()


def serve_file(exchange):
    """Packages and other files of one name, below www/NAME/."""
    host = exchange.request.header("host").partition(":")[0].lower()
    top = os.path.realpath(f"{DIRECTORY}/www/{host}")
    path = os.path.realpath(top + exchange.request.path())
    if os.path.isdir(path):
        path += "/index.html"
    if not path.startswith(f"{DIRECTORY}/www/{host}/") or not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        exchange.answer(200, f.read(), mimetypes.guess_type(path)[0] or "application/octet-stream")
    return True


def serve_endpoint(exchange):
    found = endpoints.find(exchange.request.path())
    if found:
        found[0](exchange, *found[1])
    else:
        exchange.answer(404, endpoints.description(exchange))


Web()
