"""What a host has seen, as lines of JSON in a file of its own."""
import itertools
import json
import os
import sys
import time

_numbers = itertools.count(1)


class Record:
    def __init__(self, name):
        """The directory comes from the command line: every host is started as PROGRAM BED-DIRECTORY."""
        self.name, self.directory = name, sys.argv[1]
        self.fd = os.open(f"{self.directory}/logs/{name}.jsonl",
                          os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def line(self, kind, **fields):
        """One write for each line, so that threads and readers never see half of one."""
        text = json.dumps({"time": time.time(), "host": self.name, "kind": kind, **fields})
        os.write(self.fd, text.encode() + b"\n")

    def number(self):
        """A name for a connection, so that its lines are found together."""
        return next(_numbers)

    def ready(self):
        """Everything listens now: `bed up` waits for this."""
        print("ready", flush=True)
