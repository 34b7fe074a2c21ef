"""What the web servers do, by the first part of the path. The rest are numbers or words."""
import base64
import gzip
import hashlib
import json
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


def reflect(x, name="authorization", where="body"):
    """A header of the request, given back: where a secret would be seen by who must not have it."""
    value = x.request.header(name)
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
