"""A PostgreSQL to lie to a server with: tests/postgres."""
import os
import subprocess
import tempfile

import program

SCRIPT = f"{program.TOP}/tests/postgres"


class Database:
    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="sandglass-attack-pg-", dir="/var/tmp")
        self.url = self.do("start", str(os.getpid()))
        return self

    def __exit__(self, *_):
        self.do("stop")

    def do(self, verb, *args):
        p = subprocess.run([SCRIPT, verb, self.dir, *args], capture_output=True, text=True,
                           check=True, stdin=subprocess.DEVNULL)
        return p.stdout.strip()

    def sql(self, text):
        """As its superuser; what the last statement says."""
        return self.do("psql", "-At", "-c", text)
