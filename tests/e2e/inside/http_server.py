"""A server for tests of forwarding: keeps values, echoes, streams, and tells what it was asked."""
import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

values = {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def answer(self, data, status=200, **headers):
        data = data if isinstance(data, bytes) else data.encode()
        if status in (204, 304):
            data = b""  # such an answer has no body
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(5):
            line = b"tick %d\n" % i
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(0.2)
        self.wfile.write(b"0\r\n\r\n")

    def handle_any(self):
        body = self.body()
        if self.path == "/stream":
            self.stream()
        elif self.path == "/asked":
            told = {"method": self.command, "path": self.path, "headers": list(self.headers.items())}
            self.answer(json.dumps(told), Content_Type="application/json")
        elif self.path == "/hash":
            self.answer(hashlib.sha256(body).hexdigest())
        elif self.path.startswith("/big/"):
            self.answer(b"0123456789abcdef" * (int(self.path[5:]) // 16))
        elif self.path.startswith("/status/"):
            self.answer("as asked", int(self.path[8:]), X_From="inside")
        elif self.command == "PUT":
            values[self.path] = body
            self.answer("stored")
        elif self.path in values:
            self.answer(values[self.path])
        else:
            self.answer(f"{self.command} {self.path} {len(body)}")

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
