#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets that a sandbox speaks to: one small file per thing a peer can do, in fuzz/corpus/."""
import gzip
import io
import json
import pathlib
import struct
import tarfile

CORPUS = pathlib.Path(__file__).parent / "corpus"
OPEN, DATA, EOF, CONTROL, EVENT, END, CANCEL, CREDIT = range(1, 9)
PROCESS_START, PROCESS_LIST, FILE_READ, PING = 1, 2, 7, 26
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
def context(id, was, note=b"", *variables):
    head = string(id) + string(b"python") + string(b"/home/user") + u32(1) + u32(5) + u32(was)
    return head + string(note) + u32(len(variables)) + b"".join(map(string, variables))


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
    "contexts": b"\x03" + u32(2) + context(b"0" * 36, 7, b"", b"A=1") + context(b"f" * 36, 0, b"it is gone"),
    "contexts-many": b"\x03" + u32(65) + context(b"0" * 36, 7),
    "context-id": b"\x03" + u32(1) + context(b"0" * 35, 7),
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
    "rest": packets(b"Q", b"", b"P", b"F" + u32(1), b"P"),
    "not-asked": packets(b"Q", b"P"),
}


def vector(size, data):
    return len(data).to_bytes(size, "big") + data


def extension(kind, data):
    return struct.pack(">H", kind) + vector(2, data)


def server_name(name, kind=0):
    return extension(0, vector(2, bytes([kind]) + vector(2, name)))


def hello(*extensions):
    """The body of a ClientHello."""
    return b"\x03\x03" + bytes(32) + vector(1, b"") + vector(2, b"\x13\x01\x13\x02") + vector(1, b"\0") + vector(2, b"".join(extensions))


def records(body, each=16384):
    message = b"\x01" + vector(3, body)
    return b"".join(b"\x16\x03\x01" + vector(2, message[i:i + each]) for i in range(0, len(message), each))


# size of the records, then the body
GUARD_HELLO = {
    "name": b"\x10" + hello(server_name(b"a.test"), extension(43, b"\x02\x03\x04"), extension(16, vector(2, vector(1, b"h2")))),
    "ech": b"\x01" + hello(server_name(b"cover.test"), extension(0xFE0D, b"\0" * 20)),
    "address": b"\x20" + hello(server_name(b"93.184.216.34")),
    "number": b"\x20" + hello(server_name(b"0x7f.1")),
    "nul": b"\x07" + hello(server_name(b"a.test\0.evil.test")),
    "twice": b"\x07" + hello(server_name(b"a.test"), server_name(b"b.test")),
    "other-name": b"\x07" + hello(server_name(b"a.test", 1)),
    "no-name": b"\x00" + hello(),
    "old": b"\x00" + hello()[:-2],
    "short": b"\x00" + hello(server_name(b"a.test"))[:-1],
    "longer": b"\x00" + hello(server_name(b"a.test")) + b"\0",
}
GUARD_PEEK = {
    "tls": records(hello(server_name(b"a.test"))),
    "tls-pieces": records(hello(server_name(b"a.test")), 9) + b"\x17\x03\x03\x00\x01x",
    "tls-alert-between": records(hello(server_name(b"a.test")), 9).replace(b"\x16\x03\x01\x00\x09", b"\x15\x03\x01\x00\x09"),
    "tls-huge": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff",
    "ssl2": b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10",
    "get": b"GET /x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n",
    "post": b"POST / HTTP/1.1\r\nhost: a.test:80\r\nContent-Length: 4\r\n\r\nbody",
    "absolute": b"GET http://a.test:80/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "absolute-other": b"GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "user": b"GET / HTTP/1.1\r\nHost: a.test:80@evil.test\r\n\r\n",
    "two-hosts": b"GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
    "address": b"GET / HTTP/1.0\r\nHost: [2606:2800::1]:80\r\n\r\n",
    "connect": b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
    "upgrade": b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "options": b"OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "own-method": b"BREW /pot HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4",
    "bare-lf": b"GET / HTTP/1.1\nHost: a.test\n\n",
    "fold": b"GET / HTTP/1.1\r\nHost: a.test\r\n b\r\n\r\n",
    "blank-first": b"\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
}
# with a password (1), to a name (2), then what the proxy says
GUARD_SOCKS5 = {
    "open": b"\x02\5\0\5\0\0\1\1\2\3\4\0\x50then",
    "password": b"\x03\5\2\1\0\5\0\0\4" + bytes(18),
    "bound-name": b"\x00\5\0\5\0\0\3\6a.test\0\x50",
    "wrong-password": b"\x01\5\2\1\1",
    "no-method": b"\x01\5\xff",
    "not-offered": b"\x00\5\2",
    "refused": b"\x02\5\0\5\5",
    "unknown-code": b"\x02\5\0\5\x77",
    "http": b"\x00HTTP/1.1 400 Bad Request\r\n",
    "bad-type": b"\x00\5\0\5\0\0\2\0",
}

# the default, entries of allow (+) and deny (-), questions (?)
GUARD_POLICY = {
    "names": b"d\n+a.test\n+*.B.test.\n?A.TEST\n?a.test.\n?xa.test\n?b.test\n?x.b.test\n?x.y.b.test\n?b.test.evil.test\n?*.b.test\n?xn--a.b.test\n",
    "networks": b"a\n+93.0.0.0/8\n-93.184.216.34\n-94.1.0.0/16\n-94.1.2.0/24\n+2606::/16\n-2606:2800::1\n?93.184.216.34\n?94.1.2.3\n?94.2.0.0\n?2606:2800::1\n",
    "all": b"a\n+a.test\n+10.0.0.0/8\n-0.0.0.0/0\n?a.test\n?b.test\n?2606::1\n?10.1.1.1\n?b.test@10.1.1.1\n",
    "all-six": b"d\n+::/0\n+::ffff:0:0/96\n?1.2.3.4\n?2606::1\n",
    "six": b"d\n+::/0\n-::ffff:10.0.0.0/104\n-::ffff:0:0/95\n?10.0.0.1\n?::ffff:10.0.0.1\n?2606::1\n?::\n",
    "carried": b"a\n-93.184.216.34\n+64:ff9b::/96\n?64:ff9b::5db8:d822\n?2002:5db8:d822::1\n?::93.184.216.34\n?x.test@64:ff9b::5db8:d822\n",
    "denied-names": b"a\n-*.ads.test\n-ads.test\n+good.ads.test\n+1.2.3.4\n?x.ads.test\n?x.ads.test@1.2.3.4\n?good.ads.test@9.9.9.9\n?9.9.9.9\n",
    "nested": b"d\n+*.test\n+*.b.test\n-x.b.test\n+*.x.b.test\n?y.x.b.test\n?x.b.test\n?test\n?a.test\n",
    "addresses-as-names": b"d\n?127.1\n?2130706433\n?0x7f.1\n?0177.0.0.1\n?a.0x\n?1e100.net\n",
    "bad-network": b"d\n+10.0.0.0/33\n?10.0.0.1\n",
    "bad-name": b"d\n+a..test\n?a.test\n",
    "bad-star": b"d\n+*\n?a.test\n",
}
GUARD_DOCUMENT = {
    "open": b'{"default":"allow"}',
    "list": b'{"tenant":"t","sandbox":"s","default":"deny","allow":["93.184.216.0/24","a.test","*.b.test"],"deny":["198.51.100.7"],"fakeIp":true,"flows":128,"flowRate":100,"bytes":0,"sanitise":"off"}',
    "rules": b'{"default":"allow","rules":[{"domain":"api.test","headers":[["Authorization","Bearer ${e2b.secrets.k}"]]},{"domain":"*.test"}]}',
    "secret": b'{"tenant":"t","default":"allow","secrets":[{"name":"k","sealed":"@SEALED@","placeholder":"sgph_1","hosts":["api.test","*.a.test"],"headers":["authorization"]}]}',
    "moved": b'{"tenant":"u","default":"allow","secrets":[{"name":"k","sealed":"@SEALED@"}]}',
    "proxy": b'{"default":"allow","proxy":{"address":"[2606:2800::1]:1080","username":"u"}}',
    "two": b'{"tenant":"t","default":"allow","secrets":[{"name":"k","sealed":"@SEALED@"},{"name":"k","sealed":"@SEALED@"}]}',
    "types": b'{"default":"allow","allow":{},"deny":[1],"rules":[[]],"flows":-1}',
    "deep": b'{"default":"allow","x":' + b"[" * 20 + b"]" * 20 + b"}",
    "cut": b'{"default":"allow","allow":["a.t',
}


def dns_name(name):
    return b"".join(bytes([len(label)]) + label for label in name.split(b".") if label) + b"\0"


def dns(name, kind, flags=0x0100, counts=(1, 0, 0, 0), rest=b"", class_=1):
    return struct.pack(">HH4H", 0x1234, flags, *counts) + name + struct.pack(">HH", kind, class_) + rest


def dns_opt(size=1232, version=0, options=b""):
    return struct.pack(">BHHBBHH", 0, 41, size, 0, version, 0, len(options)) + options


def dns_record(kind, data, owner=b"\xc0\x0c", ttl=60):
    return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


# questions of a sandbox
GUARD_DNS = {
    "plain": dns(dns_name(b"WwW.a.test"), 1),
    "edns": dns(dns_name(b"a.test"), 28, counts=(1, 0, 0, 1), rest=dns_opt(4096, 0, bytes.fromhex("0008000700011800010203"))),
    "edns-twice": dns(dns_name(b"a.test"), 1, counts=(1, 0, 0, 2), rest=dns_opt() + dns_opt()),
    "edns-version": dns(dns_name(b"a.test"), 1, counts=(1, 0, 0, 1), rest=dns_opt(version=1)),
    "extra": dns(dns_name(b"a.test"), 1, counts=(1, 0, 0, 2), rest=dns_record(250, b"sig", b"\1k\xc0\x0c") + dns_opt()),
    "answer": dns(dns_name(b"a.test"), 1, flags=0x8180),
    "update": dns(dns_name(b"a.test"), 6, flags=0x2800),
    "two": dns(dns_name(b"a.test"), 1, counts=(2, 0, 0, 0), rest=dns_name(b"b.test") + b"\0\1\0\1"),
    "none": struct.pack(">HH4H", 0x1234, 0x0100, 0, 0, 0, 0),
    "pointer": dns(b"\1a\xc0\x0c", 1),
    "long": dns(dns_name(b".".join([b"a" * 63] * 3 + [b"b" * 61])), 255),
    "too-long": dns(dns_name(b".".join([b"a" * 63] * 4)), 1),
    "label-64": dns(b"\x40" + b"a" * 64 + b"\0", 1),
    "binary": dns(b"\7a\0.evil\4test\0", 16),
    "chaos": dns(dns_name(b"version.bind"), 16, class_=3),
    "reverse": dns(dns_name(b"1.0.18.198.in-addr.arpa"), 12),
    "reverse-6": dns(dns_name(b".".join([b"1"] + [b"0"] * 31) + b".ip6.arpa"), 12),
    "junk": dns(dns_name(b"a.test"), 1, rest=b"junk"),
}


def dns_answer(which, kind, *records, flags=0x8180, others=(0, 0), rest=b""):
    """An answer to aB.test; which: the number of the type in the target."""
    return bytes([which]) + dns(dns_name(b"aB.test"), kind, flags, (1, len(records), *others), b"".join(records) + rest)


DNS_SERVICE = bytes.fromhex("000100" "00000004" "00010004" "00010003" "026832" "00030002" "20fb" "00040004" "0a000001"
                            "00050003" "656368" "000600020001")
# the type that was asked for, then an upstream's answer
GUARD_DNS_ANSWER = {
    "a": dns_answer(0, 1, dns_record(1, b"\x5d\xb8\xd8\x22"), dns_record(1, b"\x0a\0\0\1", ttl=0x80000000)),
    "aaaa": dns_answer(7, 28, dns_record(28, bytes(16))),
    "chain": dns_answer(0, 1, dns_record(1, b"abcd", dns_name(b"c.test")), dns_record(5, b"\1c\xc0\x0f", b"\1b\xc0\x0f"),
                        dns_record(5, b"\1b\xc0\x0f")),
    "ring": dns_answer(0, 1, dns_record(5, b"\xc0\x0c")),
    "cname": dns_answer(2, 5, dns_record(5, dns_name(b"b.test"))),
    "mx": dns_answer(5, 15, dns_record(15, b"\0\x0a\4mail\xc0\x0c")),
    "txt": dns_answer(6, 16, dns_record(16, b"\3abc\0\1x"), dns_record(16, b"\5abc")),
    "srv": dns_answer(8, 33, dns_record(33, bytes(6) + b"\xc0\x0c")),
    "soa": dns_answer(3, 6, dns_record(6, b"\2ns\xc0\x0c\4root\xc0\x0c" + bytes(20))),
    "ptr": dns_answer(4, 12, dns_record(12, dns_name(b"one.test"))),
    "https": dns_answer(10, 65, dns_record(65, DNS_SERVICE)),
    "svcb": dns_answer(9, 64, dns_record(64, DNS_SERVICE[:2] + b"\1x\0" + DNS_SERVICE[3:])),
    "nxdomain": dns_answer(0, 1, flags=0x8183, others=(1, 1), rest=dns_record(6, b"\0\0" + bytes(20), b"\4test\0") + dns_opt()),
    "badvers": dns_answer(0, 1, others=(0, 1), rest=b"\0\0\x29\4\xd0\1\0\0\0\0\0"),
    "cut": dns_answer(0, 1, dns_record(1, b"ab"), flags=0x8380),
    "forward": dns_answer(0, 1, dns_record(1, b"abcd", b"\xc0\x19")),
    "many": dns_answer(0, 1, *[dns_record(1, bytes([93, 184, 0, i])) for i in range(200)]),
}

HTTP_HOST = b"Host: a.test\r\n"
# how it is cut and whether bodies are sanitised (0x40), then what a sandbox sends
GUARD_HTTP_REQUEST = {
    "get": b"\x00GET /x?y HTTP/1.1\r\n" + HTTP_HOST + b"X-Key: mine\r\nAuthorization: Bearer sgph_k\r\n\r\n",
    "basic": b"\x80GET / HTTP/1.1\r\n" + HTTP_HOST + b"Authorization: Basic dTpzZ3BoX2s=\r\n\r\n",
    "post": b"\x01POST / HTTP/1.1\r\n" + HTTP_HOST + b"Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n" + HTTP_HOST + b"\r\n",
    "chunked": b"\x41PUT / HTTP/1.1\r\n" + HTTP_HOST + b"Transfer-Encoding: chunked\r\n\r\n5;x=y\r\na@b.c\r\n0\r\nT: v\r\n\r\n",
    "sanitised": b"\xc0POST / HTTP/1.1\r\n" + HTTP_HOST + b"Expect: 100-continue\r\nContent-Length: 15\r\n\r\nbob@example.com",
    "gzip": b"\xc0POST / HTTP/1.1\r\n" + HTTP_HOST + b"Content-Encoding: gzip\r\nContent-Length: 35\r\n\r\n"
            + gzip.compress(b"bob@example.com", mtime=0),
    "absolute": b"\x00GET http://a.test:80?q HTTP/1.1\r\nHost: A.test.:80\r\nConnection: close, x\r\nX: 1\r\n\r\n",
    "websocket": b"\x00GET / HTTP/1.1\r\n" + HTTP_HOST + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x01a",
    "head-1.0": b"\x00HEAD / HTTP/1.0\r\n" + HTTP_HOST + b"\r\n",
    "bad-both": b"\x00POST / HTTP/1.1\r\n" + HTTP_HOST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad-host": b"\x00GET / HTTP/1.1\r\nHost: b.test\r\n\r\n",
    "bad-fold": b"\x00GET / HTTP/1.1\r\n" + HTTP_HOST + b"A: b\r\n c\r\n\r\n",
    "bad-preface": b"\x00PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
# what was asked (0: GET twice, 1: HEAD, 2: 1.0, 3: WebSocket) and how it is cut, then what a server answers
GUARD_HTTP_RESPONSE = {
    "length": b"\x80HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n[s3cr3t-value/+~]HTTP/1.1 204 No\r\n\r\n",
    "chunked": b"\x04HTTP/1.1 200 OK\r\nX: s3cr3t-value/+~\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ns3cr3t-\r\n8\r\nvalue/+~\r\n0\r\n\r\n",
    "close": b"\x00HTTP/1.0 200\r\n\r\nto the end czNjcjN0LXZhbHVlLyt+ %73%33cr3t",
    "gzip": b"\x08HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"s3cr3t-value/+~", mtime=0),
    "head": b"\x81HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n",
    "old-client": b"\x02HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "interim": b"\x80HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "websocket": b"\x03HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x0fs3cr3t-value/+~ s3",
    "bad-101": b"\x80HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "bad-length": b"\x80HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    "bad-chunk": b"\x80HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    "bad-line": b"\x80220 smtp\r\n\r\n",
}
# how it is cut, the length of two secrets, these, the text
GUARD_SCRUB = {
    "plain": b"\x00\x0ehunter2sw0rdf1[hunter2][sw0rdf1]",
    "percent": b"\x01\x08a/b%c d=a%2Fb%25c%20d%3D a%2fb%c+d=",
    "base64": b"\x03\x0ehunter2sw0rdf1aHVudGVyMg== eGh1bnRlcjI= eHhodW50ZXIy",
    "overlap": b"\x02\x0eabcdefgdefghijxabcdefghijx",
    "half": b"\xff\x0ehunter2sw0rdf1hunter",
}
PULL_DIGEST = "sha256:" + "0123456789abcdef" * 4
PULL_REFERENCE = {
    "plain": b"debian", "tag": b"debian:12", "host": b"ghcr.io/x/y:v1", "port": b"localhost:5000/a/b:tag",
    "digest": b"me/app:v1@" + PULL_DIGEST.encode(), "ipv6": b"[::1]:5000/a", "separators": b"a__b/c.d/e--f/g_h",
    "dots": b"a/../b", "user": b"u:p@a.example/b", "two-colons": b"a.b:1:2/c",
}
PULL_CHALLENGE = {
    "bearer": b'Bearer realm="https://auth.example/token",service="s",scope="repository:a:pull"',
    "several": b'Negotiate, Basic realm="a", Bearer realm="https://b.example/"', "token68": b"NTLM TlRMTVNTUAAC==",
    "escaped": b'Digest qop="auth, \\"x\\"", Basic realm=y', "inside": b"Bearer realm=https://127.0.0.1/",
    "relative": b'Bearer realm="//user@b.example/x?y=z"', "no-end": b'Bearer realm="x',
}


def pull_descriptor(kind, **more):
    return {"mediaType": "application/vnd." + kind, "size": 7, "digest": PULL_DIGEST, **more}


PULL_LAYER = pull_descriptor("oci.image.layer.v1.tar+gzip")
PULL_MANIFEST = {name: json.dumps(doc).encode() for name, doc in {
    "manifest": {"schemaVersion": 2, "config": pull_descriptor("oci.image.config.v1+json"), "layers": [PULL_LAYER]},
    "foreign": {"schemaVersion": 2, "config": pull_descriptor("docker.container.image.v1+json"),
                "layers": [{**PULL_LAYER, "urls": ["https://a.example/"]}]},
    "index": {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        pull_descriptor("oci.image.manifest.v1+json", platform={"os": "linux", "architecture": arch}) for arch in ("arm64", "amd64")]},
    "schema1": {"schemaVersion": 1, "fsLayers": []},
    "both": {"schemaVersion": 2, "layers": [], "manifests": []},
    "config": {"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": [PULL_DIGEST]},
               "config": {"Env": ["A=b"], "Cmd": ["sh"], "Entrypoint": None, "User": "u", "WorkingDir": "/"}},
}.items()}


def pull_tar(kind, *files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            if isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()[:5120]


PULL_TAR = {
    "ustar": pull_tar(tarfile.USTAR_FORMAT, ("index.json", b"{}"), ("a/layer.tar", b"x")),
    "gnu": pull_tar(tarfile.GNU_FORMAT, ("x" * 200, b"y"), ("manifest.json", b"[]")),
    "pax": pull_tar(tarfile.PAX_FORMAT, ("\u00e4" * 120, b"y"), ("manifest.json", b"[]")),
    "links": pull_tar(tarfile.GNU_FORMAT, ("a/layer.tar", b"x"), ("b/layer.tar", "../a/layer.tar"), ("index.json", "/../../x")),
    "cut": pull_tar(tarfile.USTAR_FORMAT, ("index.json", b"x" * 900))[:1100],
}


def ipc(payload, fds=0, magic=0x69706366, seq=0):
    message = struct.pack("<IIQ", magic, 1, seq) + payload
    return bytes([0, len(message), fds]) + message


# steps, each a byte: see fuzz_ipc_link.c
IPC_LINK = {
    "messages": ipc(b"abc") + ipc(b"", 2) + b"\x06" + ipc(b"x" * 48) + b"\x06",
    "calls": b"\x05\x05\x05\x05" + b"\x09\x19\x01\x09" + b"\x06\x05\x03\x06",
    "full": b"\x04\x05" * 40 + b"\x06" + b"\x01" * 60 + b"\x06\x06\x03",
    "reborn": b"\x05\x04\x05\x02\x05\x09\x06\x02",
    "bad-magic": b"\x05" + ipc(b"", 1, magic=1) + b"\x06\x05\x02",
    "bad-length": b"\x05" + ipc(b"x" * 49, 7) + b"\x06\x00\x03\x05abc\x06",
    "refused": b"\x05" + ipc(b"xxx", 3) + b"\x06",
    "unasked": b"\x05" + ipc(b"", 0, seq=1) + ipc(b"", 0, seq=1 << 20) + ipc(b"", 0, seq=2**64 - 1) + b"\x06\x06",
}


def tar(*entries, **how):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **how) as t:
        for name, kind, link, data, pax in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.pax_headers = kind, link, len(data), pax
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


PLAIN = [("usr/", tarfile.DIRTYPE, "", b"", {}), ("usr/a", tarfile.REGTYPE, "", b"hello", {}),
         ("usr/b", tarfile.LNKTYPE, "usr/a", b"", {}), ("usr/c", tarfile.SYMTYPE, "a", b"", {}),
         ("usr/c/d", tarfile.FIFOTYPE, "", b"", {})]
LONG = ("long/" * 60, tarfile.SYMTYPE, "to/" * 60, b"", {})
# whether checksums are put right, then the layer
IMAGE_TAR = {name: (b"\0" if data[:2] in (b"\x1f\x8b", b"\x50\x2a") else b"\1") + data for name, data in {
    "plain": tar(*PLAIN, format=tarfile.USTAR_FORMAT),
    "gnu": tar(LONG, format=tarfile.GNU_FORMAT),
    "pax": tar(LONG, ("a", tarfile.REGTYPE, "", b"x", {"mtime": "-1.5", "uid": "-1", "SCHILY.xattr.user.a": "b"}),
               format=tarfile.PAX_FORMAT),
    "global": tar(*PLAIN, format=tarfile.PAX_FORMAT, pax_headers={"uid": "7", "comment": "x"}),
    "gzip": gzip.compress(tar(*PLAIN), mtime=0)[:-4] + b"\0\0\0\0",
    "members": gzip.compress(tar(*PLAIN)[:700], mtime=0) + gzip.compress(tar(*PLAIN)[700:], mtime=0),
    "marks": tar(("a/.wh.b", tarfile.REGTYPE, "", b"", {}), ("a/.wh..wh..opq", tarfile.REGTYPE, "", b"", {})),
    "dots": tar(("a/../b", tarfile.REGTYPE, "", b"", {})),
    "sparse": tar(("a", tarfile.GNUTYPE_SPARSE, "", b"", {})),
    "zstd": b"\x50\x2a\x4d\x18\x04\0\0\0skip\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello",
}.items()}


def record(kind, path=b"", target=b"", mode=0o755, size=0, block=0, attrs=b""):
    head = struct.pack("<BBHIIIqQIHHHHI", kind, 0, mode, 0, 0, 0, 0, size, block, len(path), len(target), len(attrs), 0, 0)
    body = head + path + target + attrs
    return body + bytes(-len(body) % 8)


def image_list(*records):
    return b"SGLIST1\n" + b"".join(records) + record(8, target=bytes(32), mode=0, size=len(records), block=8)


IMAGE_LIST = {
    "kinds": image_list(record(2), record(1, b"a", size=5000, block=3, attrs=b"\1\1\1\0ab\0\0"), record(3, b"b", b"a"),
                        record(4, b"c", b"a", mode=0), record(5, b"d"), record(6, b"e", mode=0), record(7, b"e", mode=0)),
    "links": image_list(record(2, b"usr"), record(3, b"lib", b"/usr/../usr"), record(1, b"lib/x"), record(4, b"y", b"lib/x", mode=0)),
    "loop": image_list(record(3, b"a", b"b"), record(3, b"b", b"a"), record(5, b"a/x")),
    "twice": image_list(record(1, b"a/b"), record(2, b"a/b"), record(5, b"a"), record(4, b"a", b"a", mode=0)),
    "outside": image_list(record(1, b"a", size=4096, block=8)),
}
# changes to an image: see fuzz_image_check.c
IMAGE_CHECK = {
    "none": b"",
    "super": struct.pack("<HBHBHB", 1024, 0, 1104, 0xFF, 1110, 2),
    "device": struct.pack("<HBHB", 4096, 0x2F, 4160, 7),
    "root": struct.pack("<HBHBHB", 8192, 1, 8200, 9, 8236, 3),
    "inode": struct.pack("<HBHB", 8196, 0x80, 8224, 1),
    "names": struct.pack("<HBHB", 8256, 1, 8264, 2),
}


def archive_of(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, kind, content, link in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(content), link
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


# archives for COPY steps
TAR = {
    "plain": archive_of(("app", tarfile.DIRTYPE, b"", ""), ("app/main.py", tarfile.REGTYPE, b"print(1)", ""),
                 ("app/link", tarfile.SYMTYPE, b"", "main.py"), ("app/hard", tarfile.LNKTYPE, b"", "app/main.py")),
    "pax": archive_of(("é" * 120, tarfile.REGTYPE, b"x", ""), ("l", tarfile.SYMTYPE, b"", "y" * 200)),
    "gnu": archive_of(("n" * 120, tarfile.REGTYPE, b"x", ""), ("l", tarfile.SYMTYPE, b"", "y" * 200), form=tarfile.GNU_FORMAT),
    "device": archive_of(("null", tarfile.CHRTYPE, b"", "")),
    "out": archive_of(("/etc/x", tarfile.REGTYPE, b"x", ""), ("s/../../x", tarfile.REGTYPE, b"x", "")),
    "cut": archive_of(("f", tarfile.REGTYPE, b"x" * 600, ""))[:1000],
}


def volume_record(kind, payload=b""):
    return struct.pack("<II", kind, len(payload)) + payload


def volume_entry(path, kind=0, target=b"", size=5):
    return volume_record(1, struct.pack("<IIIIQqqqII", kind, 0o644, 1000, 1000, size, 0, 1, 2, len(path), len(target)) + path + target)


def volume_end(code=0, text=b""):
    return volume_record(3, struct.pack("<iIQ320s", code, 1, 4096, text))


def volume_request(op, path, flags=0, depth=1, length=None):
    return b"\x01" + struct.pack("<8IQ", 0x53565631, op, flags, 0, 0, 0o644, depth, len(path) if length is None else length, 1 << 30) + path


# 0: records of a helper; 1: a request and its path; 2: a path of a client
VOLUME = {
    "list": b"\x00" + volume_entry(b"/a", 1) + volume_entry(b"/a/l", 2, b"../f") + volume_end(),
    "read": b"\x00" + volume_entry(b"/f") + volume_record(2, b"hello") + volume_end(),
    "failed": b"\x00" + volume_end(-2, b"No such file or directory"),
    "bad-kind": b"\x00" + volume_record(9) + volume_end(),
    "bad-length": b"\x00" + struct.pack("<II", 2, 1 << 30) + b"x",
    "bad-entry": b"\x00" + volume_record(1, b"short") + volume_entry(b"") + volume_end(1),
    "request": volume_request(1, b"/a/b", depth=2),
    "request-bad": volume_request(7, b"/a/../b", 255, length=5000),
    "path": b"\x02//a/./b/../c/",
    "path-up": b"\x02/../../etc/passwd",
}

for target, seeds in {"chan_host": HOST, "chan_agent": AGENT, "wire": WIRE, "requests": REQUESTS, "interpreter_lines": LINES,
                      "kernel_packets": KERNEL_PACKETS, "guard_hello": GUARD_HELLO, "guard_peek": GUARD_PEEK,
                      "guard_socks5": GUARD_SOCKS5,
                      "pull_reference": PULL_REFERENCE, "pull_challenge": PULL_CHALLENGE,
                      "pull_manifest": PULL_MANIFEST, "pull_tar": PULL_TAR,
                      "guard_policy": GUARD_POLICY, "guard_document": GUARD_DOCUMENT,
                      "guard_dns": GUARD_DNS, "guard_dns_answer": GUARD_DNS_ANSWER,
                      "guard_http_request": GUARD_HTTP_REQUEST, "guard_http_response": GUARD_HTTP_RESPONSE,
                      "guard_scrub": GUARD_SCRUB, "ipc_link": IPC_LINK,
                      "image_tar": IMAGE_TAR, "image_list": IMAGE_LIST, "image_check": IMAGE_CHECK, "tar": TAR, "volume": VOLUME}.items():
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (CORPUS / target / name).write_bytes(data)
