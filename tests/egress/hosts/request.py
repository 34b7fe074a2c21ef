"""HTTP/1.1 as a plain server reads it: what came is kept as it came, so that a test sees every byte of a head."""
HEAD_MAX = 256 * 1024


class Request:
    def __init__(self, raw):
        lines = raw.decode("latin-1").split("\n")
        self.raw = raw.decode("latin-1")
        self.method, self.target, self.version = lines[0].strip().split(" ")
        self.headers = []
        for line in lines[1:]:
            if line.strip():
                name, _, value = line.partition(":")
                self.headers.append((name, value.strip()))

    def header(self, name, default=""):
        """The first of that name."""
        return next((v for n, v in self.headers if n.lower() == name), default)

    def has(self, name, word):
        return word in self.header(name).lower()

    def keeps_alive(self):
        return self.version == "HTTP/1.1" and not self.has("connection", "close")

    def path(self):
        return self.target.partition("?")[0]


class Exchange:
    """One request and its answer, over a peer's socket."""

    def __init__(self, peer, stream, request):
        self.peer, self.stream, self.request = peer, stream, request
        self.sock, self.read_all = peer.sock, False

    # ---- the body of the request

    def pieces(self):
        """The body as it comes."""
        if self.read_all:
            return
        self.read_all = True
        if self.request.has("expect", "100-continue"):
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self.request.has("transfer-encoding", "chunked"):
            yield from self._chunks()
            return
        left = int(self.request.header("content-length", "0"))
        while left > 0:
            piece = self.stream.read1(min(left, 65536))
            if not piece:
                raise EOFError(f"{left} bytes of a body are missing")
            left -= len(piece)
            yield piece

    def _chunks(self):
        while True:
            size = int(self.stream.readline().partition(b";")[0], 16)
            if size == 0:
                break
            data = self.stream.read(size)
            if len(data) < size:
                raise EOFError("a chunk is not whole")
            yield data
            self.stream.readline()
        while self.stream.readline().strip():
            pass

    def body(self):
        return b"".join(self.pieces())

    # ---- the answer

    def head(self, status, headers, reason="OK"):
        lines = [f"HTTP/1.1 {status} {reason}", *(f"{n}: {v}" for n, v in headers), "", ""]
        self.sock.sendall("\r\n".join(lines).encode("latin-1"))

    def answer(self, status, body, content_type="application/json", headers=()):
        for _ in self.pieces():  # what was not read would be taken for the next request
            pass
        if isinstance(body, str):
            body = body.encode()
        self.head(status, [("Content-Type", content_type), ("Content-Length", len(body)), *headers])
        if self.request.method != "HEAD":
            self.sock.sendall(body)

    def begin_chunks(self, headers=()):
        for _ in self.pieces():
            pass
        self.head(200, [("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked"), *headers])

    def chunk(self, data):
        self.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def end_chunks(self):
        self.sock.sendall(b"0\r\n\r\n")


def read_head(stream):
    """Up to the empty line; b"" if the client has gone."""
    raw = b""
    while len(raw) < HEAD_MAX:
        line = stream.readline(HEAD_MAX)
        if not line and not raw:
            return b""
        if not line:
            raise EOFError("a head is not whole")
        if not line.strip() and not raw:
            continue
        if not line.strip():
            return raw
        raw += line
    raise ValueError("a head without an end")
