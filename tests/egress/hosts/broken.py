"""Answers that are no HTTP, or that two readers would read differently: /bad/KIND."""
import time

ANSWERS = {
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello",
    "length-and-chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                         b"5\r\nhello\r\n0\r\n\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
    "negative-length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
    "huge-length": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
    "chunk-size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    "chunk-huge": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello",
    "chunk-end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    "coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "fold": b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 5\r\n\r\nhello",
    "bare-lf": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "bare-cr": b"HTTP/1.1 200 OK\r\nX: y\rContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello",
    "nul": b"HTTP/1.1 200 OK\r\nX: \0\r\nContent-Length: 5\r\n\r\nhello",
    "space-colon": b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
    "no-status": b"HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "status": b"HTTP/1.1 99999 OK\r\nContent-Length: 5\r\n\r\nhello",
    "version": b"HTTP/9.9 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "not-http": b"hello, this is not HTTP at all\r\n",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: else\r\nConnection: upgrade\r\n\r\nelse",
    "two-answers": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
                   b"\r\nevil",
    "short-body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello",
    "long-line": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\nContent-Length: 5\r\n\r\nhello",
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 200 +
             b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
}


def answer(x, kind="", *_):
    for _ in x.pieces():
        pass
    if kind == "endless-head":
        x.sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            x.sock.sendall(b"X-Header: value\r\n" * 100)
    if kind == "slow-head":
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":
            x.sock.sendall(bytes([byte]))
            time.sleep(0.01)
    elif kind in ANSWERS:
        x.sock.sendall(ANSWERS[kind])
    else:
        x.answer(404, f"no /bad/{kind}: {' '.join(ANSWERS)}", "text/plain")
        return
    raise EOFError("closed after a bad answer")
