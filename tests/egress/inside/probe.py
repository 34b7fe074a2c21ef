"""Stands in front of what a test runs inside a sandbox: attempts, and what came of each as a text."""
import concurrent.futures
import contextlib
import errno
import json
import os
import select
import socket
import ssl
import struct
import sys
import time

WAIT_S = 8
DNS = "192.0.2.53"


def attempt(function, *args, **kwargs):
    """What it gives, or the name of its error."""
    try:
        got = function(*args, **kwargs)
    except TimeoutError:
        return "TIMEOUT"
    except ssl.SSLError as e:
        return f"SSL {e.reason}"
    except OSError as e:
        return errno.errorcode.get(e.errno, type(e).__name__)
    return got.decode("latin-1") if isinstance(got, bytes) else got


def together(function, arguments):
    """What comes of each, all at once."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        return list(pool.map(lambda args: attempt(function, *args), arguments))


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def address(host, port):
    """With a zone if it has one."""
    host, _, zone = host.partition("%")
    return (host, port, 0, socket.if_nametoindex(zone)) if zone else (host, port)


def connect(host, port):
    s = socket.socket(family(host))
    s.settimeout(WAIT_S)
    try:
        s.connect(address(host, port))
    except OSError:
        s.close()
        raise
    return s


def rest(s, got=b""):
    """All that comes until the other side has ended."""
    while piece := s.recv(65536):
        got += piece
    return got


def tcp(host, port, data=b"", pause=0.0):
    """Says something and listens; with a pause, byte by byte."""
    with connect(host, port) as s:
        with contextlib.suppress(ConnectionError):  # what was answered meanwhile counts
            for piece in [data[i:i + 1] for i in range(len(data))] if pause else [data]:
                s.sendall(piece)
                time.sleep(pause)
        return rest(s)


def udp(host, port, data=b"x", wait=1.0):
    with socket.socket(family(host), socket.SOCK_DGRAM) as s:
        s.settimeout(wait)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.connect(address(host, port))
        s.send(data)
        return s.recv(65535)


def datagrams(targets, data=b"hello", wait=0.7):
    """{target: answer} of one to each (host, port): those that are silent are not in it."""
    sockets, answers = {}, {}
    for target in targets:
        s = socket.socket(family(target[0]), socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        with contextlib.suppress(OSError):
            s.connect(address(*target))
            s.send(data)
            sockets[s] = target
    deadline = time.monotonic() + wait
    while sockets and (left := deadline - time.monotonic()) > 0:
        for s in select.select(list(sockets), [], [], left)[0]:
            answer = attempt(s.recv, 65535)
            target = sockets.pop(s)
            if answer not in ("ECONNREFUSED", "EHOSTUNREACH"):
                answers["{} {}".format(*target)] = answer
    return answers


def http(host, port=80, name=None, target="/who", more="", method="GET"):
    """One request; name: of its Host header."""
    name = host if name is None else name
    return tcp(host, port, f"{method} {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{more}\r\n"
               .encode("latin-1"))


def anyone():
    """A client of TLS that believes every certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def https(host, sni, name=None, port=443, context=None, target="/who"):
    with connect(host, port) as s, (context or anyone()).wrap_socket(s, server_hostname=sni) as t:
        t.sendall(f"GET {target} HTTP/1.1\r\nHost: {name or sni}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        return rest(t)


def hello(name, extensions=b""):
    """A ClientHello, with more extensions behind those that it has."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        anyone().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    body = bytearray(out.read()[9:])
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    body[at:at + 2] = struct.pack(">H", int.from_bytes(body[at:at + 2], "big") + len(extensions))
    body += extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data


def server_name(name):
    """The extension, with any bytes as the name."""
    return extension(0, struct.pack(">HBH", len(name) + 3, 0, len(name)) + name)


def question(name, kind=1, ident=0x1234, flags=0x0100, count=1):
    """A query; name: text, or bytes as they are on the wire."""
    if isinstance(name, str):
        name = b"".join(bytes([len(x)]) + x.encode("latin-1") for x in name.split(".") if x) + b"\0"
    return struct.pack(">HHHHHH", ident, flags, count, 0, 0, 0) + name + struct.pack(">HH", kind, 1)


def exactly(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise ConnectionResetError(errno.ECONNRESET, "ended")
        data += piece
    return data


def ask(message, host=DNS, stream=False, wait=5.0):
    """The answer to a query."""
    if not stream:
        return udp(host, 53, message, wait)
    with connect(host, 53) as s:
        s.sendall(struct.pack(">H", len(message)) + message)
        return exactly(s, int.from_bytes(exactly(s, 2), "big"))


def resolve(name, kind=1, host=DNS, stream=False):
    """(code, addresses) or an error's name."""
    answer = attempt(ask, question(name, kind), host, stream)
    if len(answer) < 12 or answer.isupper():
        return answer
    data = answer.encode("latin-1")
    count = int.from_bytes(data[6:8], "big")
    at = 12 + len(question(name)) - 12
    found = []
    for _ in range(count):
        while data[at]:
            at += 2 if data[at] >= 0xC0 else data[at] + 1
            if data[at - 2] >= 0xC0:
                break
        else:
            at += 1
        record, size = struct.unpack(">H", data[at:at + 2])[0], struct.unpack(">H", data[at + 8:at + 10])[0]
        value = data[at + 10:at + 10 + size]
        at += 10 + size
        if record in (1, 28):
            found.append(socket.inet_ntop(socket.AF_INET if record == 1 else socket.AF_INET6, value))
    return [data[3] & 15, sorted(found)]


def show(value):
    print(json.dumps(value), flush=True)
