"""Interpreters that are driven by a program in their own language: driver.R, Driver.java.

Two pipes between it and us, with frames: length (u32, big-endian) of what follows, a byte that says
what it is, and a payload.

    to the driver                          from the driver
    g  KEY=VALUE, from now on              B  the cell has begun: SIGINT is welcome
    d  directory, from now on              R  m, d or e: a result begins
    v  KEY=VALUE, for the next cell        T  key, NUL, text: a field of it
    x  code                                J  key, NUL, JSON text
                                           P  key, NUL, path of a file: in base64; it is removed
                                           r  the result is whole
                                           F  the cell is over
                                           S  answer with s when all that was written is read

S is for what has to stay in order: output to one stream after output to the other or a result.
"""
import base64
import json
import os
import struct

from .child import Child, describe_end, write_all

IN, OUT = 60, 61  # the driver's descriptors


class Interpreter:
    """`command(bridge)` of a subclass gives program and arguments; the last two are added: the
    paths of the pipes."""

    name = None

    def __init__(self, bridge, _language):
        self.bridge = bridge
        self.child = None

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environb)

    def start(self):
        command = self.command()
        reader, self.to_driver = os.pipe()
        self.from_driver, writer = os.pipe()
        try:
            self.child = Child(self.bridge, command + [f"/dev/fd/{IN}", f"/dev/fd/{OUT}"],
                               ((reader, IN), (writer, OUT)), self.environment())
        finally:
            os.close(reader)
            os.close(writer)
        self.child.watch(self.from_driver)
        self.buffer = bytearray()
        self.fields = {}
        self.kind = ""

    def send(self, kind, payload):
        write_all(self.to_driver, struct.pack(">I", 1 + len(payload)) + kind + payload)

    def set(self, name, value):
        if self.child:
            self.send(b"g", name + b"=" + value)

    def chdir(self, path):
        if self.child:
            self.send(b"d", path)

    def run(self, code, variables):
        if self.child is None:
            self.start()
        for name, value in variables:
            self.send(b"v", name + b"=" + value)
        self.send(b"x", code)
        self.begun = False
        self.is_over = False
        while not self.is_over:
            self.step()
        if self.child and self.bridge.interrupts.count:
            self.child.settle()

    def interrupt(self):
        self.child.interrupt()

    def step(self):
        ready = self.child.wait()
        if self.from_driver in ready:
            data = os.read(self.from_driver, 1 << 18)
            if data:
                self.buffer += data
                self.take_frames()
                return
        if self.child.pidfd in ready:
            self.on_end()
        elif self.bridge.interrupts.fd in ready:
            self.bridge.interrupts.seen()
            if self.begun:
                self.interrupt()
        else:
            self.child.unwatch(self.from_driver)  # closed, but still alive: wait for its end

    def take_frames(self):
        at = 0
        while len(self.buffer) - at >= 4:
            size, = struct.unpack_from(">I", self.buffer, at)
            if len(self.buffer) - at - 4 < size:
                break
            frame = bytes(self.buffer[at + 4:at + 4 + size])
            at += 4 + size
            self.on_frame(chr(frame[0]), frame[1:])
        del self.buffer[:at]

    def on_frame(self, kind, payload):
        if kind == "B":
            self.begun = True
            if self.bridge.interrupts.count:
                self.interrupt()
        elif kind == "R":
            self.kind, self.fields = payload.decode(), {}
        elif kind in "TJP":
            key, _, value = payload.partition(b"\0")
            self.fields[key.decode()] = self.value(kind, value)
        elif kind == "r":
            if self.kind == "e":
                self.bridge.error(*(self.fields.get(k, "") for k in ("name", "value", "traceback")))
            else:
                self.bridge.result(self.kind, self.fields)
        elif kind == "S":
            self.bridge.settle()
            self.send(b"s", b"")
        elif kind == "F":
            self.is_over = True

    @staticmethod
    def value(kind, data):
        if kind == "P":
            path = os.fsdecode(data)
            with open(path, "rb") as file:
                content = file.read()
            os.unlink(path)
            return base64.b64encode(content).decode()
        text = data.decode(errors="replace")
        return json.loads(text) if kind == "J" else text

    def on_end(self):
        status = self.child.reap()
        os.close(self.to_driver)
        os.close(self.from_driver)
        self.child = None
        self.is_over = True
        text = (f"{self.name} {describe_end(status)}: the next cell gets a new one, "
                "without the variables of this one")
        if status < 0:
            self.bridge.error("InterpreterKilled", text)
        else:
            self.bridge.note(text)

    def close(self):
        if self.child:
            self.child.kill()
