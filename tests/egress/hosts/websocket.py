"""A WebSocket that sends back every message (RFC 6455), and the headers of its handshake if it is asked `headers`."""
import base64
import hashlib
import json
import struct

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def exactly(stream, n):
    data = stream.read(n)
    if len(data) < n:
        raise EOFError("the client has gone")
    return data


def read_frame(stream):
    first, second = exactly(stream, 2)
    size = second & 0x7F
    if size >= 126:
        size = int.from_bytes(exactly(stream, 2 if size == 126 else 8), "big")
    mask = exactly(stream, 4) if second & 0x80 else bytes(4)
    data = exactly(stream, size)
    return first & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def send_frame(sock, kind, data):
    size = len(data)
    head = bytes([0x80 | kind])
    if size < 126:
        head += bytes([size])
    else:
        head += struct.pack(">BH", 126, size) if size < 65536 else struct.pack(">BQ", 127, size)
    sock.sendall(head + data)


def serve(x, *_):
    key = x.request.header("sec-websocket-key")
    if not key or not x.request.has("upgrade", "websocket"):
        x.answer(426, "websocket only", "text/plain", [("Upgrade", "websocket")])
        return
    accept = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
    x.head(101, [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)],
           "Switching Protocols")
    while True:
        kind, data = read_frame(x.stream)
        x.peer.log("frame", type=kind, bytes=len(data))
        if kind == CLOSE:
            send_frame(x.sock, CLOSE, data)
            raise EOFError("the WebSocket was closed")
        if kind == TEXT and data == b"headers":
            data = json.dumps(x.request.headers).encode()
        send_frame(x.sock, PONG if kind == PING else kind, data)
