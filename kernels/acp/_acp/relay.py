"""The program between an ACP client and its agent.

    client --- 0 ---> [initialize: more abilities] --- outbox ---> agent
    client <-- 1 ---- [fs/..., terminal/... are taken out] <------ agent
                                   |
                                   +-- answers --- outbox ---> agent

Lines pass as they are, many at once where none of them matters to us; one that does is parsed. Each direction has a
thread, and what the agent reads has one of its own: neither an agent that does not read nor a client that does
not can stop the other direction.
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

from . import answers, lines

CLIENT_BOUND = 4 << 20    # of what the agent has not read, before the client's next line waits
ANSWER_BOUND = 64 << 20   # and before the agent's next request does
LAST_WORDS_S = 0.5        # for output that the agent's children still write
CANNOT_RUN, NOT_FOUND, OWN_STATUS_MAX = 126, 127, 123

# A slash may be escaped in JSON.
OURS = re.compile(rb'"(?:fs|terminal)\\?/|"\$\\?/cancel_request"')
INITIALIZE = b'"initialize"'


def message(line):
    """The object in a line, or None: it is noise, or not for us to judge."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def encode(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def able(line):
    """The client's line; its `initialize` says that files and terminals are there."""
    request = message(line)
    if not request or request.get("method") != "initialize" or not isinstance(request.get("params"), dict):
        return line
    abilities = request["params"].get("clientCapabilities")
    abilities = dict(abilities) if isinstance(abilities, dict) else {}
    files = abilities.get("fs")
    files = dict(files) if isinstance(files, dict) else {}
    abilities["fs"] = {**files, "readTextFile": True, "writeTextFile": True}
    abilities["terminal"] = True
    request["params"]["clientCapabilities"] = abilities
    return encode(request)


def from_client(fd, outbox):
    for data, whole in lines.Lines(fd):
        if not whole:
            outbox.put_part(data, CLIENT_BOUND)
        elif INITIALIZE not in data:
            outbox.put(data, CLIENT_BOUND)
        else:
            outbox.put(b"".join(able(line) if INITIALIZE in line else line for line in newline_split(data)),
                       CLIENT_BOUND)
    outbox.close()


class Desk:
    """Takes requests out of what the agent writes."""

    def __init__(self, outbox):
        self._outbox = outbox
        self._answers = answers.Answers(lambda value: outbox.put(encode(value), ANSWER_BOUND))

    def keep(self, line):
        """Whether the line is for the client."""
        request = message(line)
        return not (request and self._answers.take(request))

    def close(self):
        self._answers.close()


def newline_split(data):
    """By line feeds alone: other line ends can be inside of JSON's strings."""
    start = 0
    while start < len(data):
        end = data.index(b"\n", start) + 1
        yield data[start:end]
        start = end


def from_agent(pieces, desk):
    try:
        for data, whole in pieces:
            if whole and OURS.search(data):
                data = b"".join(line for line in newline_split(data) if not OURS.search(line) or desk.keep(line))
            if data:
                lines.write_all(1, data)
    except BrokenPipeError:  # the client is gone, and the agent finds that out as it would without us
        pieces.close()


def last_words(thread, pieces):
    """What the agent wrote is delivered however slowly it is read; who else has its pipe open is not waited for."""
    while thread.is_alive():
        thread.join(0.02)
        since = pieces.idle_since
        if since is not None and time.monotonic() - since > LAST_WORDS_S:
            return


def start(command):
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    except (FileNotFoundError, NotADirectoryError):
        print(f"cannot run '{command[0]}': it is not there", file=sys.stderr)
        sys.exit(NOT_FOUND)
    except (OSError, ValueError) as why:
        print(f"cannot run '{command[0]}': {why}", file=sys.stderr)
        sys.exit(CANNOT_RUN)


def leave(status):
    """As the agent did."""
    sys.stderr.flush()
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(min(status, OWN_STATUS_MAX) if status < 128 else status)


def main(words):
    if len(words) < 2 or words[0] != "--":
        sys.exit("usage: serve_fs.py -- AGENT [ARG]...")
    agent = start(words[1:])
    outbox = lines.Outbox(os.dup(agent.stdin.fileno()))
    agent.stdin.close()
    desk = Desk(outbox)
    threading.Thread(target=from_client, args=(0, outbox), daemon=True).start()
    pieces = lines.Lines(os.dup(agent.stdout.fileno()))
    output = threading.Thread(target=from_agent, args=(pieces, desk), daemon=True)
    agent.stdout.close()
    output.start()
    status = agent.wait()
    last_words(output, pieces)
    desk.close()
    leave(status)
