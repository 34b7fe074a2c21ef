#!/usr/bin/python3 -B
"""The DNS server of the bed. Every question is on record; what is answered is in zone.py and tricks.py."""
import struct
import threading

import tricks
import world
import zone
from peers import Listeners
from record import Record

ANSWER_FLAGS = 0x8580
UDP_MAX = 1232
SHORTEST = 12 + 5


class Question:
    """Its wire form is kept as it came, with the case of its letters."""

    def __init__(self, message):
        if len(message) < SHORTEST:
            raise ValueError("no whole question")
        self.id, _, count = struct.unpack(">HHH", message[:6])
        at, labels = 12, []
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]])
            at += 1 + message[at]
            if at >= len(message) - 4:
                raise ValueError("a name without an end")
        self.wire_name = message[12:at + 1]
        self.type = struct.unpack(">H", message[at + 1:at + 3])[0]
        self.wire = message[12:at + 5]
        self.spelled = b".".join(labels).decode("latin-1")
        self.name = self.spelled.lower()
        if count != 1:
            raise ValueError("not one question")


def make(q, records, code=zone.NOERROR, flags=ANSWER_FLAGS, question=None):
    """records: (name on the wire, type, data)."""
    body = b"".join(name + struct.pack(">HHIH", kind, 1, zone.TTL, len(data)) + data
                    for name, kind, data in records)
    return struct.pack(">HHHHHH", q.id, flags | code, 1, len(records), 0, 0) + \
        (question or q.wire) + body


def records_of(q):
    """(code, records); aliases are followed, as a resolver would."""
    records, name, wire = [], q.name, q.wire_name
    for _ in range(8):
        known = zone.find(name)
        if known is None:
            return (zone.NOERROR if records else zone.NXDOMAIN), records
        if isinstance(known, zone.Code):
            return known.code, records
        if isinstance(known, zone.Trick):
            return zone.SERVFAIL, []
        if zone.CNAME not in known:
            return zone.NOERROR, records + [(wire, q.type, data) for data in known.get(q.type, ())]
        name = known[zone.CNAME][0]
        records.append((wire, zone.CNAME, zone.wire_name(name)))
        wire = zone.wire_name(name)
    return zone.NOERROR, records


def answers(q, tcp):
    """All that is sent."""
    known = zone.find(q.name) if q.name.endswith(".trick.test") else None
    if isinstance(known, zone.Trick):
        return tricks.play(known.how, q, make, tcp)
    code, records = records_of(q)
    answer = make(q, records, code)
    if not tcp and len(answer) > UDP_MAX:
        answer = make(q, [], code, ANSWER_FLAGS | 0x0200)
    return [answer]


class Server:
    def __init__(self):
        self.record = Record("dns")
        listeners = Listeners(self.record)
        listeners.udp(world.DNS, 53, self.datagram)
        listeners.tcp(world.DNS, 53, self.stream)
        listeners.serve()

    def read(self, message, tcp):
        q = Question(message)
        self.record.line("query", name=q.name, spelled=q.spelled, type=q.type, tcp=tcp)
        return q

    def datagram(self, message, answer):
        try:
            q = self.read(message, False)
        except (ValueError, IndexError) as e:
            self.record.line("malformed", error=str(e), message=message.hex())
            return
        threading.Thread(target=lambda: [answer(a) for a in answers(q, False)], daemon=True).start()

    def stream(self, peer):
        stream = peer.sock.makefile("rb")
        while len(head := stream.read(2)) == 2:
            for a in answers(self.read(stream.read(struct.unpack(">H", head)[0]), True), True):
                peer.sock.sendall(struct.pack(">H", len(a)) + a)


Server()
