#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets that a sandbox speaks to: one small file per thing a peer can do, in fuzz/corpus/."""
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"
OPEN, DATA, EOF, CONTROL, EVENT, END, CANCEL, CREDIT = range(1, 9)
PROCESS_START, PROCESS_LIST, FILE_READ, PING = 1, 2, 7, 24
DISCARD, CONTINUE = 3, 4


def frame(stream, kind, sub=0, payload=b"", reserved=0):
    return struct.pack("<IIBBH", len(payload), stream, kind, sub, reserved) + payload


def u32(*values):
    return struct.pack(f"<{len(values)}I", *values)


def string(s):
    return u32(len(s)) + s + b"\0"


def request(stream, op, body=b"", total=None):
    return frame(stream, OPEN, op, u32(len(body) if total is None else total) + body)


def end(stream, status=0, message=b"", result=b""):
    return frame(stream, END, 0, u32(status) + string(message) + result)


# mode byte, size of the pieces / 16 (0: all at once), then the bytes
HOST = {
    "process": b"\x00\x00" + frame(1, EVENT, 1, u32(7)) + frame(1, DATA, 1, b"out") + frame(1, DATA, 2, b"err") + end(1),
    "error": b"\x0a\x01" + frame(2, EVENT, 3) + end(2, 2, b"no such file") + end(1) + end(3),
    "gone": b"\x08\x00" + end(1) + end(1) + frame(1, DATA, 1, b"late") + end(4),
    "credit": b"\x04\x00" + frame(3, CREDIT, 0, u32(0x80000)) + frame(1, CREDIT, 0, u32(1)),
    "choked": b"\x14\x00" + frame(1, CREDIT, 0, u32(0x100000)) + frame(2, CREDIT, 0, u32(0x100000)),
    "drained": b"\x04\x02" + b"".join(frame(i % 3 + 1, CREDIT, 0, u32(0x100000)) for i in range(12)),
    "grant": b"\x00\x00" + frame(1, DATA, 1, bytes(0x20000)),
    "corked": b"\x34\x00" + frame(1, CREDIT, 0, u32(0x3FF80000)),
    "bad-end": b"\x00\x00" + frame(1, END, 0, u32(0, 9) + b"short\0"),
    "bad-credit": b"\x00\x00" + frame(1, CREDIT, 0, u32(0xFFFFFFFF)),
    "bad-stream": b"\x00\x00" + frame(9, EVENT, 1, u32(7)),
    "bad-reserved": b"\x00\x00" + frame(1, EVENT, 1, u32(7), reserved=1),
    "too-long": b"\x00\x00" + struct.pack("<IIBBH", 0x20001, 1, DATA, 1, 0),
}
AGENT = {
    "ping": b"\x01\x00" + request(1, PING) + request(2, PING, b"hello"),
    "process": b"\x01\x01" + request(1, PROCESS_START, b"argv") + frame(1, DATA, 0, b"in") + frame(1, EOF) + frame(1, CANCEL),
    "control": b"\x01\x00" + request(1, PROCESS_START) + frame(1, CONTROL, 2, u32(24, 80)) + frame(1, CONTROL, DISCARD, u32(1)),
    "continue": b"\x01\x00" + request(1, PING, b"ab", 6) + frame(1, CONTROL, CONTINUE, b"cd") + frame(1, CONTROL, CONTINUE, b"ef"),
    "cancel-half": b"\x01\x00" + request(1, PING, b"ab", 6) + frame(1, CANCEL),
    "too-big": b"\x01\x00" + request(1, PING, b"", 0x200001) + request(2, PING, b"", 0x200000),
    "read": b"\x01\x00" + request(1, FILE_READ) + frame(1, CREDIT, 0, u32(0x10000)) + frame(1, CANCEL),
    "grant": b"\x01\x00" + request(1, PROCESS_START) + frame(1, DATA, 0, bytes(0x20000)),
    "crowd": b"\x01\x00" + request(1, PING, b"", 0x200000) + request(2, PING, b"", 0x200000) + request(3, PING, b"", 1),
    "deaf": b"\x00\x00" + b"".join(request(i, PROCESS_LIST) for i in range(1, 30)),
    "crossing": b"\x01\x00" + request(1, PING) + frame(1, CANCEL) + frame(1, EOF) + request(5, 99),
    "bad-order": b"\x01\x00" + request(5, PING) + request(4, PING),
    "bad-eof": b"\x01\x00" + request(1, PROCESS_START) + frame(1, EOF) + frame(1, DATA, 0, b"x"),
}
WIRE = {
    "numbers": b"\x04\x01\x02\x00" + b"\x05" + u32(7) + u32(1, 2),
    "strings": b"\x03\x0b\x00" + string(b"") + string(b"hello"),
    "nul-inside": b"\x0b\x00" + u32(3) + b"a\0c\0",
    "long": b"\x03\x00" + string(b"four"),
    "short": b"\x01\x00" + b"\x01\x02",
}
# what is read, then the payload
REQUESTS = {
    "args": b"\x00" + u32(2) + string(b"echo") + string(b"hello"),
    "no-command": b"\x00" + u32(1) + string(b""),
    "many": b"\x00" + u32(4097),
    "variables": b"\x01" + u32(2) + string(b"HOME=/elsewhere") + string(b"A="),
    "no-value": b"\x01" + u32(1) + string(b"NAME"),
    "metadata": b"\x02" + u32(2) + string(b"author") + string(b"me") + string(b"empty") + string(b""),
    "metadata-long": b"\x02" + u32(2) + string(b"a") + string(b"v" * 4000) + string(b"b") + string(b"w" * 96),
    "metadata-key": b"\x02" + u32(1) + string(b"k" * 247) + string(b""),
}


def cell(*frames):
    """Frames of a cell: what it is (0-3: packet R, T, J, r; 4, 5: output), length, bytes."""
    return b"".join(bytes([what, len(data)]) + data for what, data in frames)


LINES = {
    "result": cell((0, b"m"), (1, b"text\0002"), (2, b'chart\0{"type":"line","elements":[{"points":[[1,2.5e3]]}]}'), (3, b"")),
    "output": cell((4, b"out\xe4\xb8"), (5, b"err\xff"), (4, b"\x96\n\0\x1b[0m\"\\"), (4, b"\xf0\x9f\x98")),
    "pieces": cell((0, b"d"), (1, b"html\0<b>\xc3"), (1, b"html\0\xa9</b>"), (2, b'data\0{"a":[1,'), (2, b"data\0tr"), (2, b"data\0ue]}"), (3, b"")),
    "error": cell((0, b"e"), (1, b"name\0ValueError"), (1, b"value\0bad \xed\xa0\x80"), (1, b"traceback\0a\nb"), (3, b""), (0, b"e"), (1, b"name\0x")),
    "surrogates": cell((0, b"m"), (2, b'json\0["\\ud83d\\ude00","\\ud83d","\\ude00\\u0000",-0.0e-1,18446744073709551616]'), (3, b"")),
    "broken-json": cell((0, b"m"), (2, b'data\0{"a":[{"b":"\\u12'), (1, b"text\0x"), (2, b"json\0[1,]"), (2, b'extra\0{"k":nul}'), (2, b'chart\0{"a":1,}'), (3, b"")),
    "deep": cell((0, b"m"), (2, b"json\0" + b"[" * 65), (3, b"")),
    "disorder": cell((1, b"text\0x"), (3, b""), (0, b"mm"), (0, b"m"), (1, b"text\0a"), (1, b"html\0b"), (1, b"text\0c"), (4, b"held"), (0, b"d"), (6, b"Ttext\0d"), (6, b"Z"), (1, b"nokey")),
}


def packets(*all):
    return b"".join(struct.pack("<H", len(p)) + p for p in all)


# packets of a kernel; an empty one is the beginning of a cell
KERNEL_PACKETS = {
    "cell": packets(b"Q", b"", b"Rm", b"Ttext\x002", b"Jdata\0{}", b"r", b"F" + u32(1)),
    "cells": packets(b"Q", b"", b"F" + u32(1), b"", b"Re", b"Tname\0E", b"r", b"F" + u32(2), b""),
    "stray": packets(b"Q", b"Rd", b"", b"Ttext\0late", b"r", b"F" + u32(1), b"Rd", b"r"),
    "stray-end": packets(b"Q", b"Rd", b"", b"F" + u32(1), b"r", b"", b"F" + u32(2)),
    "not-ready": packets(b"Rm"),
    "wrong-cell": packets(b"Q", b"", b"F" + u32(2)),
    "no-cell": packets(b"Q", b"F" + u32(0)),
    "half-result": packets(b"Q", b"", b"Rm", b"F" + u32(1)),
    "no-key": packets(b"Q", b"", b"Rm", b"T\0text"),
    "long-key": packets(b"Q", b"", b"Rm", b"T" + b"k" * 33 + b"\0text"),
    "twice": packets(b"Q", b"Q"),
}

for target, seeds in {"chan_host": HOST, "chan_agent": AGENT, "wire": WIRE, "requests": REQUESTS, "interpreter_lines": LINES,
                      "kernel_packets": KERNEL_PACKETS}.items():
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (CORPUS / target / name).write_bytes(data)
