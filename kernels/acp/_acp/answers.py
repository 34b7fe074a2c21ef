"""Answers to what an agent asks of its client: in the protocol's shapes, with its errors."""
import json

from . import files, terminals
from .errors import Failed, internal, invalid

CANCELLED = Failed(-32800, "Request cancelled")


def key(identity):
    """Ids are of any type of JSON: 1, "1" and null are three."""
    return json.dumps(identity, sort_keys=True)


class Answers:
    def __init__(self, send):
        self._send = send
        self._terminals = terminals.Terminals()
        self._methods = {
            "fs/read_text_file": files.read,
            "fs/write_text_file": files.write,
            "terminal/create": self._terminals.create,
            "terminal/output": self._terminals.output,
            "terminal/kill": self._terminals.kill,
            "terminal/release": self._terminals.release,
        }

    def take(self, request):
        """Answers it, now or later. False: it is not for us."""
        method = request.get("method")
        if method == "$/cancel_request":
            return self._cancel(request)
        if method != "terminal/wait_for_exit" and method not in self._methods:
            return False
        if "id" not in request:  # a notification has no answer, and these methods no other sense
            return True
        self._answer(request["id"], method, request.get("params"))
        return True

    def _answer(self, identity, method, params):
        try:
            if not isinstance(params, dict):
                raise invalid("an object is needed")
            if method == "terminal/wait_for_exit":
                self._terminals.wait(params, key(identity), lambda status: self._result(identity, status))
            else:
                self._result(identity, self._methods[method](params))
        except Failed as why:
            self._error(identity, why)
        except Exception as why:  # the agent waits for an answer, whatever happens
            self._error(identity, internal(f"{type(why).__name__}: {why}"))

    def _result(self, identity, result):
        self._send({"jsonrpc": "2.0", "id": identity, "result": result})

    def _error(self, identity, why):
        error = {"code": why.code, "message": str(why)}
        if why.data is not None:
            error["data"] = why.data
        self._send({"jsonrpc": "2.0", "id": identity, "error": error})

    def _cancel(self, request):
        """What was asked of us and waits is given up; others' are the client's."""
        params = request.get("params")
        if not isinstance(params, dict) or not self._terminals.forget(key(params.get("requestId"))):
            return False
        self._error(params.get("requestId"), CANCELLED)
        return True

    def close(self):
        self._terminals.close()
