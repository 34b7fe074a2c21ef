"""The API byte by byte: what no SDK sends, what other SDKs than the JavaScript one send, and what must not
be told. TAP on standard output; E2B_API_KEY, E2B_API_URL and E2E_OTHER_KEY come from tests/e2e/run.

    wire.py [PATTERN]    only the tests whose names match"""
import re
import sys

from wire import binary, control, files, hostile, interpreter, process, tap, tenants

tap.main([control, tenants, process, files, binary, hostile, interpreter], re.compile(sys.argv[1] if sys.argv[1:] else ""))
