"""Requests to a server, each held against the document, and a line of TAP for each."""
import http.client
import json

TIMEOUT_S = 60


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()
        json_there = self.headers.get("content-type") == "application/json"
        self.json = json.loads(self.body) if json_there else None


def send(server, method, target, data=None, headers=None, announced=None):
    """announced: how long a body is said to be that is never sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
    try:
        connection.putrequest(method, target)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        length = announced if announced is not None else len(data) if data is not None else None
        if length is not None:
            connection.putheader("Content-Length", str(length))
        connection.endheaders(data)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def events_of(body):
    """The (event, data) of a stream of server-sent events."""
    events = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append((fields["event"], json.loads(fields["data"])))
    return events


class Session:
    def __init__(self, document):
        self.document, self.seen = document, set()
        self.number = self.failed = 0

    def check(self, what, problems=()):
        self.number += 1
        self.failed += bool(problems)
        for problem in problems:
            print("#", str(problem)[:600])
        print("not ok" if problems else "ok", self.number, "-", what, flush=True)

    def send(self, server, method, target, data=None, accept=None, announced=None):
        """A request with the server's key; nothing is checked."""
        headers = {"X-API-Key": server.key} | ({"Accept": accept} if accept else {})
        return send(server, method, target, data, headers, announced)

    def upgrade(self, server, target):
        """A request for a WebSocket, of which only the answer is read."""
        return send(server, "GET", target, headers={
            "X-API-Key": server.key, "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="})

    def judge(self, operation, answer, status, what, says="", more=()):
        """Whether an answer has this status and is as described."""
        problems = [*more, *self.document.answer_problems(operation, answer.status, answer.headers,
                                                          answer.body)]
        if answer.status != status:
            problems.append(f"{answer.status} instead of {status}: {answer.body[:400]}")
        if answer.status >= 300 and answer.json:
            if answer.json["code"] != answer.status or says not in answer.json["message"]:
                problems.append(f"no '{says}' in {answer.json}")
        self.seen.add((operation, answer.status))
        self.check(f"{' '.join(operation)} {status}{': ' if what else ''}{what}", problems)

    def call(self, server, status, method, target, body=None, what="", says="", key=True, raw=None,
             announced=None, accept=None, location=None):
        """Sends a request that must be answered with `status`, as described. body: as JSON; raw: bytes
        instead. says: a part of the error's message. location: where the answer must send to. Returns
        the answer's JSON, or its events."""
        operation = self.document.operation_of(method, target)
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        answer = self.send(server, method, target, data, accept, announced) if key \
            else send(server, method, target, data)
        more = []
        if answer.status < 300 and raw is None:
            more = [f"taken, and not as described: {p}"
                    for p in self.document.request_problems(operation, body)]
        if answer.headers.get("location") != location:
            more.append(f"Location: {answer.headers.get('location')}")
        self.judge(operation, answer, status, what, says, more)
        return answer.json if answer.json is not None else events_of(answer.body)
