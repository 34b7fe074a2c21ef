"""A small registry of npm packages at http://registry.test:PORT, and the name server that knows this name: both on the host's loopback, which a
sandbox reaches through the guard alone."""
import base64
import hashlib
import http.server
import io
import json
import socketserver
import struct
import tarfile
import threading

HOST = "registry.test"
# A program that needs a library.
PACKAGES = {
    "hello-lib": ({"main": "index.js"}, {"index.js": "exports.says = 'hello from a library'\n"}),
    "hello-tool": ({"bin": {"hello-tool": "tool.js"}, "dependencies": {"hello-lib": "^1.0.0"}},
                   {"tool.js": "#!/usr/bin/env node\nconsole.log(require('hello-lib').says, 'to a tool')\n"}),
}


def packed(manifest, files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in {"package.json": json.dumps(manifest), **files}.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(text), 0o755 if text.startswith("#!") else 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Names(socketserver.BaseRequestHandler):
    """Every name has the loopback's address."""

    def handle(self):
        query, sock = self.request
        end = 12
        while query[end]:
            end += query[end] + 1
        is_a = struct.unpack_from("!H", query, end + 1)[0] == 1
        record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
        sock.sendto(query[:2] + struct.pack("!5H", 0x8180, 1, int(is_a), 0, 0) + query[12:end + 5] + record, self.client_address)


class NpmRegistry:
    def __init__(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = registry.files.get(self.path)
                registry.asked.append(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self.files, self.asked = {}, []
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.names = socketserver.ThreadingUDPServer(("127.0.0.1", 0), Names)
        self.url = f"http://{HOST}:{self.web.server_port}/"
        # What a server needs whose sandboxes are to reach it.
        self.options = ("--egress-dns", f"127.0.0.1:{self.names.server_address[1]}", "--egress-internal", "127.0.0.1")
        for name, (more, files) in PACKAGES.items():
            self.add({"name": name, "version": "1.0.0", **more}, files)

    def add(self, manifest, files):
        name, data = manifest["name"], packed(manifest, files)
        place = f"/{name}/-/{name}-1.0.0.tgz"
        dist = {"tarball": self.url[:-1] + place, "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}
        self.files[place] = data
        self.files[f"/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {**manifest, "dist": dist}}}).encode()

    def __enter__(self):
        for server in (self.web, self.names):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in (self.web, self.names):
            server.shutdown()
            server.server_close()
