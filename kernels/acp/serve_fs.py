"""serve_fs.py -- AGENT [ARG]...: stands between an ACP client and AGENT, and answers what the agent asks of the client's
files and terminals with those of this sandbox."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from _acp import relay  # noqa: E402

relay.main(sys.argv[1:])
