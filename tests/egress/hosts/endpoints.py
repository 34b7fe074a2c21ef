"""What the web servers do, by the first part of the path. The rest are numbers or words."""
import base64
import gzip
import hashlib
import html
import json
import re
import time
import urllib.parse

import broken
import git_server
import websocket

HANG_S = 600
BLOCK = bytes(range(256)) * 256


def who(x, *_):
    """Who this is, and what it has seen."""
    return x.answer(200, description(x))


def description(x):
    peer, r = x.peer, x.request
    return json.dumps({"who": peer.who, "local": peer.local, "port": peer.port, "sni": peer.sni,
                       "tls": peer.tls, "method": r.method, "target": r.target,
                       "host": r.header("host"), "headers": r.headers})


def echo(x, *_):
    body = x.body()
    x.answer(200, body, x.request.header("content-type", "application/octet-stream"))


def upload(x, *_):
    digest, size = hashlib.sha256(), 0
    for piece in x.pieces():
        digest.update(piece)
        size += len(piece)
    x.answer(200, json.dumps({"bytes": size, "sha256": digest.hexdigest()}))


def download(x, size="1000000"):
    """So many bytes: 0, 1, 2 ... 255, 0, 1 ..."""
    left = int(size)
    x.head(200, [("Content-Type", "application/octet-stream"), ("Content-Length", left)])
    while left > 0:
        x.sock.sendall(BLOCK[:left])
        left -= len(BLOCK)


def chunked(x, count="10", size="100"):
    x.begin_chunks()
    for i in range(int(count)):
        x.chunk(bytes([ord("a") + i % 26]) * int(size))
    x.end_chunks()


def slow(x, count="5", pause_ms="200"):
    x.begin_chunks()
    for _ in range(int(count)):
        time.sleep(int(pause_ms) / 1000)
        x.chunk(b".")
    x.end_chunks()


def forever(x, *_):
    """Until the other side has enough."""
    x.begin_chunks()
    while True:
        x.chunk(BLOCK)


def hang(x, *_):
    time.sleep(HANG_S)


def reset(x, when="now"):
    """now: instead of an answer; half: in the middle of one."""
    if when == "half":
        x.head(200, [("Content-Length", 1000)])
        x.sock.sendall(b"x" * 500)
        time.sleep(0.2)
    x.peer.reset()
    raise EOFError("reset, as asked")


def close(x, *_):
    raise EOFError("closed, as asked")


def until_close(x, size="1000"):
    """A body that ends with the connection."""
    x.head(200, [("Content-Type", "text/plain"), ("Connection", "close")])
    x.sock.sendall(b"x" * int(size))
    raise EOFError("the body has ended")


def status(x, code="200"):
    x.answer(int(code), "" if code in ("204", "304") else json.dumps({"code": int(code)}))


def redirect(x, *_):
    to = urllib.parse.unquote(x.request.target.partition("?")[2])
    x.answer(302, "", headers=[("Location", to)])


def zipped(x, *_):
    """Compressed, if the client takes that."""
    text = description(x).encode()
    if x.request.has("accept-encoding", "gzip"):
        x.answer(200, gzip.compress(text), headers=[("Content-Encoding", "gzip")])
    else:
        x.answer(200, text)


def in_lines(text, column, end):
    return end.join(text[i:i + column] for i in range(0, len(text), column))


def written(value):
    """As hosts write what they got, without meaning to hide it."""
    packed = [base64.b64encode((" " * n + value).encode("latin-1")).decode() for n in range(3)]
    yield from (in_lines(p, column, end) for p in packed for column in (1, 7, 76) for end in ("\n", "\r\n", "\n  "))
    yield json.dumps([in_lines(p, 8, "\n") for p in packed])
    yield json.dumps(value).replace("-", "\\u002d").replace("/", "\\/")
    yield html.escape(value).replace("-", "&#45;").replace("e", "&#x65;")
    yield value.upper()
    yield value.encode("latin-1").hex()
    yield value.encode("latin-1").hex().upper()
    yield value.encode("utf-16-le").decode("latin-1")
    yield value[:-1]


def part(x, body):
    """As Range asks for it: one range, or several."""
    ranges = [(int(a), int(b)) for a, b in re.findall(r"(\d+)-(\d+)", x.request.header("range"))]
    total = len(body)
    if len(ranges) == 1:
        a, b = ranges[0]
        return x.answer(206, body[a:b + 1], "text/plain", [("Content-Range", f"bytes {a}-{b}/{total}")])
    parts = "".join(f"--cut\r\nContent-Range: bytes {a}-{b}/{total}\r\n\r\n{body[a:b + 1]}\r\n" for a, b in ranges)
    return x.answer(206, parts + "--cut--\r\n", "multipart/byteranges; boundary=cut")


kept = {}


def reflect(x, name="authorization", where="body"):
    """A header of the request, given back: where a secret would be seen by who must not have it."""
    value = x.request.header(name)
    if where == "written":
        return x.answer(200, "\n\n".join(written(value.rpartition(" ")[2])), "text/plain")
    if where == "range":
        return part(x, value) if x.request.header("range") else x.answer(200, value, "text/plain")
    if where == "unasked":  # a part that nobody asked for
        return x.answer(206, value[:20], "text/plain", [("Content-Range", f"bytes 0-19/{len(value)}")])
    if where == "several":
        return x.answer(200, "--cut\r\n\r\n" + value[:20], "Multipart/ByteRanges; boundary=cut")
    if where == "name":
        word = value.rpartition(" ")[2]
        return x.answer(200, "", headers=[(word, "1"), (word.title(), "2"), ("X-" + word.upper(), "3")])
    if where == "reason":
        x.head(200, [("Content-Length", 0)], reason=value)
        return None
    if where == "trailer":
        x.head(200, [("Transfer-Encoding", "chunked"), ("Trailer", "X-Late")])
        return x.sock.sendall(f"1;ext={value.rpartition(' ')[2]}\r\nx\r\n0\r\nX-Late: {value}\r\n\r\n".encode("latin-1"))
    if where == "keep":
        kept[name] = value
        return x.answer(200, "kept", "text/plain")
    if where == "kept":
        return x.answer(200, kept.get(name, "nothing"), "text/plain")
    forms = [value, base64.b64encode(value.encode("latin-1")).decode(),
             urllib.parse.quote(value, safe=""), "".join(f"%{ord(c):02x}" for c in value)]
    word = value.rpartition(" ")[2]
    forms += [word, base64.b64encode(word.encode("latin-1")).decode(), urllib.parse.quote(word, safe="")]
    if where == "header":
        x.answer(200, "", headers=[("X-Reflected", value)])
    elif where == "pieces":
        x.begin_chunks()
        for c in "\n".join(forms):
            x.chunk(c.encode("latin-1"))
            time.sleep(0.002)
        x.end_chunks()
    else:
        x.answer(200, "\n".join(forms), "text/plain")


PATHS = {"": who, "who": who, "echo": echo, "upload": upload, "download": download,
         "chunked": chunked, "slow": slow, "forever": forever, "hang": hang, "reset": reset,
         "close": close, "until-close": until_close, "status": status, "redirect": redirect,
         "zipped": zipped, "reflect": reflect, "bad": broken.answer, "websocket": websocket.serve,
         "git": git_server.serve}


def find(path):
    """(function, its arguments), or None."""
    first, *rest = path.strip("/").split("/")
    return (PATHS[first], rest) if first in PATHS else None
