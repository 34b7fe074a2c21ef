"""A registry that lies. What it does wrong is the name of the repository; `right` does nothing wrong."""
import base64
import gzip
import http.server
import json
import socket
import ssl
import threading
import time
import urllib.parse

from pull_image import DOCKER_V1, MANIFEST, PASSWORD, Image

ENDLESS = b"x" * 65536
TOKEN, IDENTITY = "a.token-of/the_registry", "identity token 42"
ACCOUNT = json.dumps({"type": "service_account", "private_key": "k"}, indent=1)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, handler, context=None):
        super().__init__(("127.0.0.1", 0), handler)
        self.port = self.server_port
        self.seen = []  # (method, path, headers) of all requests
        self.counts = {}
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, address):
        pass  # clients hang up on it, as they should


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    image = Image()
    others = {}  # name: "http://host:port", where it redirects to

    def log_message(self, *_):
        pass

    # ---- answers

    def send(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def send_endless(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(ENDLESS)

    def hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def again(self, what):
        """How often this was asked before."""
        n = self.server.counts.get(what, 0)
        self.server.counts[what] = n + 1
        return n

    # ---- requests

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append(("POST", self.path, dict(self.headers), body))
        if self.path == "/":
            return self.ecr(body)
        form = urllib.parse.parse_qs(body.decode())
        good = form.get("refresh_token") == [IDENTITY] and form.get("grant_type") == ["refresh_token"]
        return self.send(200 if good else 401, json.dumps({"access_token": TOKEN}).encode())

    def ecr(self, body):
        good = (body == b"{}" and self.headers["X-Amz-Target"].endswith(".GetAuthorizationToken") and
                self.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/") and
                "/eu-west-1/ecr/aws4_request" in self.headers["Authorization"])
        token = base64.b64encode(f"AWS:{PASSWORD}".encode()).decode()
        return self.send(200 if good else 400, json.dumps({"authorizationData": [{"authorizationToken": token}]}).encode())

    def do_GET(self):
        self.server.seen.append(("GET", self.path, dict(self.headers), b""))
        if self.path.startswith("/token"):
            return self.token()
        _, _, name, kind, what = self.path.split("?")[0].split("/", 4)
        if not self.allowed(name):
            return None
        lie = getattr(self, f"{kind}_{name.replace('-', '_')}", None)
        return lie(what) if lie else getattr(self, kind)(what)

    def manifests(self, what):
        kind, body = self.image.manifests.get(what, (None, None))
        if body is None:
            return self.send(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"a stranger\'s words"}]}')
        return self.send(200, body, kind)

    def blobs(self, what):
        body = self.image.blobs.get(what)
        if body is None:
            return self.send(404, b"<html>")
        start = self.headers.get("Range", "")
        if start:
            n = int(start.removeprefix("bytes=").removesuffix("-"))
            return self.send(206, body[n:], "application/octet-stream", Content_Range=f"bytes {n}-{len(body) - 1}/{len(body)}")
        return self.send(200, body, "application/octet-stream")

    def is_layer(self, what):
        """The config is fetched as a blob too: lies about layers leave it alone."""
        return not self.image.blobs[what].startswith(b"{")

    # ---- proofs

    def allowed(self, name):
        wants = {"basic": "Basic realm=x", "ecr": "Basic realm=x", "gcp": "Basic realm=x", "token": f'Bearer realm="{self.others.get("token", "")}/token",service="s"',
                 "token-inside": 'Bearer realm="https://127.0.0.1:1/token"', "token-file": 'Bearer realm="file:///etc/passwd"',
                 "proof": "Negotiate"}.get(name)
        basic = {"basic": f"user:{PASSWORD}", "ecr": f"AWS:{PASSWORD}", "gcp": f"_json_key:{ACCOUNT}"}.get(name)
        right = "Basic " + base64.b64encode(basic.encode()).decode() if basic else f"Bearer {TOKEN}"
        if not wants or self.headers.get("Authorization") == right:
            return True
        self.send(401, b'{"errors":[{"code":"UNAUTHORIZED"}]}', WWW_Authenticate=wants)
        return False

    def token(self):
        given = self.headers.get("Authorization")
        right = "Basic " + base64.b64encode(f"user:{PASSWORD}".encode()).decode()
        if given == right or (given is None and "anonymous" in self.others):
            return self.send(200, json.dumps({"token": TOKEN, "expires_in": 60}).encode())
        return self.send(401, b"{}")

    # ---- manifests that are wrong

    def manifests_html(self, _):
        self.send(200, b"<html>Welcome to the hotel's network</html>", "text/html; charset=utf-8")

    def manifests_not_json(self, _):
        self.send(200, b"{]", MANIFEST)

    def manifests_gzip(self, _):
        self.send(200, gzip.compress(self.image.index), MANIFEST, Content_Encoding="gzip")

    def manifests_endless(self, _):
        self.send_endless(MANIFEST)

    def manifests_announced(self, _):
        self.send(200, b"{}", MANIFEST, Content_Length=str(1 << 40))

    def manifests_schema1(self, _):
        self.send(200, b'{"schemaVersion":1,"fsLayers":[]}', DOCKER_V1)

    def manifests_other(self, what):
        kind, body = self.image.manifests[what]
        self.send(200, body if what == "latest" else body + b" ", kind)

    def manifests_foreign(self, _):
        m = self.image.manifest()
        m["layers"][0]["urls"] = ["https://example.com/"]
        self.send(200, json.dumps(m).encode(), MANIFEST)

    def manifests_head(self, _):
        self.send(200, b"{}", MANIFEST, **{f"X{i}": "y" * 1000 for i in range(90)})

    def manifests_moved(self, what):
        self.send(307, Location=f"/v2/moved/manifests/{what}?again")

    def manifests_inside(self, _):
        self.send(307, Location="https://169.254.169.254/latest/meta-data")

    def manifests_name_inside(self, _):
        self.send(307, Location=f"https://localhost:{self.server.port + 1}/")

    def manifests_elsewhere(self, _):
        self.send(307, Location="file:///etc/passwd")

    def manifests_plain(self, what):
        self.send(307, Location=f"{self.others['plain']}/v2/right/manifests/{what}")

    def manifests_hang(self, _):
        time.sleep(30)

    def manifests_busy(self, what):
        if self.again("busy") < 2:
            return self.send(429 if self.again("429") else 503, b"{}", Retry_After="0")
        return self.manifests(what)

    def manifests_always_busy(self, _):
        self.send(503, b'{"errors":[{"code":"TOOMANYREQUESTS"}]}')

    def manifests_absent(self, _):
        self.manifests("nothing")

    def manifests_teapot(self, _):
        self.send(418, b"\x1b[31mred")

    # ---- configs and layers that are wrong

    def blobs_config(self, what):
        if self.is_layer(what):
            return self.blobs(what)
        return self.send(200, self.image.blobs[what].replace(b"somebody", b"rootroot"))

    def blobs_changed(self, what):
        body = self.image.blobs[what]
        self.send(200, body[:-1] + b"!" if self.is_layer(what) else body)

    def blobs_short(self, what):
        body = self.image.blobs[what]
        self.send(200, body[:-1] if self.is_layer(what) else body)

    def blobs_long(self, what):
        body = self.image.blobs[what]
        self.send(200, body + b"!" if self.is_layer(what) else body)

    def blobs_endless(self, what):
        if not self.is_layer(what):
            return self.blobs(what)
        return self.send_endless("application/octet-stream")

    def cut(self, what, times):
        """Ends in the middle of a body, `times` times."""
        body = self.image.blobs[what]
        if not self.is_layer(what) or self.again(self.path) >= times:
            return self.blobs(what)
        n = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        rest = body[n:]
        self.send(206 if n else 200, rest[:len(rest) // 2], "application/octet-stream", Content_Length=str(len(rest)),
                  **({"Content_Range": f"bytes {n}-{len(body) - 1}/{len(body)}"} if n else {}))
        return self.hang_up()

    def blobs_cut(self, what):
        self.cut(what, 2)

    def blobs_always_cut(self, what):
        self.cut(what, 1000)

    def blobs_part(self, what):
        body = self.image.blobs[what]
        if self.headers.get("Range"):
            return self.send(206, body, Content_Range=f"bytes 0-{len(body) - 1}/{len(body)}")
        return self.cut(what, 1)

    def blobs_from_start(self, what):
        """Sends all of it, whatever was asked for."""
        if self.headers.get("Range"):
            return self.send(200, self.image.blobs[what])
        return self.cut(what, 1)

    def blobs_stall(self, what):
        if not self.is_layer(what):
            return self.blobs(what)
        self.send(200, self.image.blobs[what][:100], Content_Length=str(len(self.image.blobs[what])))
        return time.sleep(30)

    def blobs_slow(self, what):
        """Takes its time: for somebody to lose patience."""
        if not self.is_layer(what):
            return self.blobs(what)
        body = self.image.blobs[what]
        self.send(200, body[:2000], Content_Length=str(len(body)))
        for at in range(2000, len(body), 3000):
            time.sleep(0.2)
            self.wfile.write(body[at:at + 3000])
        return None

    def blobs_elsewhere(self, what):
        self.send(307, Location=f"{self.others['store']}/v2/right/blobs/{what}")

    blobs_basic = blobs_elsewhere


class Proxy(http.server.BaseHTTPRequestHandler):
    """CONNECT, to where the test wants it."""
    targets = {}

    def log_message(self, *_):
        pass

    def do_CONNECT(self):
        self.server.seen.append(("CONNECT", self.path, dict(self.headers), b""))
        port = self.targets.get(self.path)
        if not port:
            return self.send_error(403)
        with socket.create_connection(("127.0.0.1", port)) as to:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=self.carry, args=(to, self.connection), daemon=True)
            back.start()
            self.carry(self.connection, to)
            back.join()
        self.close_connection = True
        return None

    @staticmethod
    def carry(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
