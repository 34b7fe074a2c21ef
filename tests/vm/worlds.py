"""Worlds on the kernel of the virtual machine: the steps behind worlds.sh. Before Linux 6.15 there are none, and that is said."""
import os
import subprocess
import sys

from lib import PATIENCE_S, Client, Server, check, equal

server = Server(sys.argv[1], sys.argv[2])
server.start(PATIENCE_S)
client = Client(server, PATIENCE_S)
with open(f"{server.state}/../root.tar", "wb") as file:
    file.write(bytes(10240))  # which it does not come to
    ran = subprocess.run([server.program, "world", "import", "--state", server.state, "--name", "small", file.name], capture_output=True,
                         text=True, check=False)
check("a world is refused with one line, which says what it needs", ran.returncode == 1 and ran.stderr.count("\n") == 1 and
      f"need Linux 6.15 or later, this is {os.uname().release}" in ran.stderr, f"{ran.stdout} {ran.stderr}")
equal("it is no template", client.api("POST", "/v2/sandboxes", {"templateID": "small"})[0], 404)
equal("base is the host's files", client.run(client.create(), "echo here"), (0, "here\n"))
equal("nothing is left of it", os.listdir(f"{server.state}/worlds") if os.path.exists(f"{server.state}/worlds") else [], [])
equal("the server ends", server.stop(), 0)
