"""Starts a kernel as the agent does and speaks for it with a test.

Node can make neither a seqpacket socket nor plain pipes for a child, so this program does. It takes
lines of JSON on standard input and writes lines of JSON to standard output:

    {"send": base64}  {"signal": number}  {"close": true}  {"hold": "hearer" or "handler" or null}
    {"packet": base64}  {"stdout": base64}  {"stderr": base64}  {"exit": status}

As in the agent, what is in the pipes is passed on before a packet. While a kernel is held, threads of it are
stopped, as on a busy machine, where they wait for their turn: with "hearer" those that block signals, as
Node's that hears of SIGINT does; with "handler" one that took SIGINT in the main thread's place and has not
got further than to the signal's handler. "signal" goes to the kernel's programs alone then.
"""

import base64
import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys

PTRACE_SINGLESTEP, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 9, 17, 0x4206, 0x4207
SYS_TGKILL = 234
WALL = 0x40000000  # waitpid: threads too
LIBC = ctypes.CDLL(None, use_errno=True)


def ptrace(request, task, data=None):
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(task), None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


class Bridge:
    def __init__(self, command):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.child = self.start(command, theirs.fileno(), out, err)
        theirs.close()
        os.close(out)
        os.close(err)
        self.selector = selectors.DefaultSelector()
        for file, handler in (
            (0, self.on_line),
            (self.control, self.on_packet),
            (self.out, lambda: self.on_output(self.out, "stdout")),
            (self.err, lambda: self.on_output(self.err, "stderr")),
        ):
            self.selector.register(file, selectors.EVENT_READ, handler)
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)
        self.input = b""
        self.held = []
        self.took = False

    @staticmethod
    def start(command, control, out, err):
        def arrange():
            os.setpgid(0, 0)
            os.dup2(control, 3)

        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            close_fds=False,
            preexec_fn=arrange,
        )

    @staticmethod
    def say(**message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    def on_output(self, fd, name):
        while True:
            try:
                data = os.read(fd, 1 << 20)
            except BlockingIOError:
                return
            if not data:
                if fd in self.selector.get_map():
                    self.selector.unregister(fd)
                return
            self.say(**{name: base64.b64encode(data).decode()})

    def drain(self):
        self.on_output(self.out, "stdout")
        self.on_output(self.err, "stderr")

    def on_packet(self):
        try:
            packet = self.control.recv(1 << 20)
        except ConnectionResetError:
            packet = b""
        self.drain()
        if packet:
            self.say(packet=base64.b64encode(packet).decode())
        else:
            self.selector.unregister(self.control)

    def on_line(self):
        data = os.read(0, 1 << 20)
        if not data:
            os.killpg(self.child.pid, signal.SIGKILL)
            sys.exit(0)
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            self.obey(json.loads(line))

    def obey(self, order):
        if "send" in order:
            self.control.send(base64.b64decode(order["send"]))
        elif "signal" in order:
            self.signal(order["signal"])
        elif "close" in order:
            self.control.shutdown(socket.SHUT_RDWR)
        elif "hold" in order:
            {"hearer": self.hold, "handler": self.hold_handler, None: self.release}[order["hold"]]()

    def signal(self, number):
        if not self.took:
            os.killpg(self.child.pid, number)
            return
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children") as file:
            for program in file.read().split():
                os.kill(int(program), number)

    def threads(self):
        """The kernel's threads besides the main one, and whether each blocks signals."""
        for task in map(int, os.listdir(f"/proc/{self.child.pid}/task")):
            if task != self.child.pid:
                yield task, self.blocks_signals(task)

    def hold(self):
        for task, blocks in self.threads():
            if not blocks:
                continue
            ptrace(PTRACE_SEIZE, task)
            ptrace(PTRACE_INTERRUPT, task)
            os.waitpid(task, WALL)
            self.held.append(task)

    def hold_handler(self):
        task = next(task for task, blocks in self.threads() if not blocks)
        ptrace(PTRACE_SEIZE, task)
        LIBC.syscall(SYS_TGKILL, self.child.pid, task, signal.SIGINT)
        os.waitpid(task, WALL)
        ptrace(PTRACE_SINGLESTEP, task, ctypes.c_long(signal.SIGINT))
        os.waitpid(task, WALL)
        assert self.blocks_signals(task)
        self.held.append(task)
        self.took = True

    def blocks_signals(self, task):
        with open(f"/proc/{self.child.pid}/task/{task}/status") as file:
            mask = next(line.split()[1] for line in file if line.startswith("SigBlk:"))
        return bool(int(mask, 16) & 1 << signal.SIGINT - 1)

    def release(self):
        while self.held:
            ptrace(PTRACE_DETACH, self.held.pop())
        self.took = False

    def run(self):
        while self.child.poll() is None:
            for key, _ in self.selector.select(0.05):
                key.data()
        self.drain()
        self.say(exit=self.child.returncode)


Bridge(sys.argv[1:]).run()
