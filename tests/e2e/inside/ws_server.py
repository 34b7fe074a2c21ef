"""A WebSocket server for tests of forwarding: sends back every message, and tells the path first."""
import base64
import hashlib
import socketserver
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Handler(socketserver.StreamRequestHandler):
    def frame(self, opcode, data):
        head = bytes([0x80 | opcode])
        if len(data) < 126:
            head += bytes([len(data)])
        elif len(data) < 65536:
            head += b"\x7e" + struct.pack(">H", len(data))
        else:
            head += b"\x7f" + struct.pack(">Q", len(data))
        self.wfile.write(head + data)
        self.wfile.flush()

    def read_frame(self):
        first, second = self.rfile.read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self.rfile.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self.rfile.read(8))
        mask = self.rfile.read(4)
        data = bytearray(self.rfile.read(size))
        for i in range(4):
            data[i::4] = bytes(b ^ mask[i] for b in data[i::4])
        return first & 0x80, first & 0x0F, bytes(data)

    def handle(self):
        request = self.rfile.readline().split()
        headers = {}
        while (line := self.rfile.readline().strip()):
            name, value = line.split(b":", 1)
            headers[name.lower()] = value.strip()
        key = headers.get(b"sec-websocket-key")
        if not key:
            self.wfile.write(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self.frame(1, b"path " + request[1])
        message, kind = b"", 1
        while True:
            last, opcode, data = self.read_frame()
            if opcode == 8:
                self.frame(8, data[:2])
                return
            if opcode == 9:
                self.frame(10, data)
                continue
            kind = opcode or kind
            message += data
            if last:
                self.frame(kind, message)
                message = b""


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("0.0.0.0", 8001), Handler).serve_forever()
