"""The protocol's errors, and how parameters are read."""


class Failed(Exception):
    def __init__(self, code, text, data=None):
        super().__init__(text)
        self.code = code
        self.data = data


def invalid(why):
    return Failed(-32602, f"Invalid params: {why}")


def not_found(what):
    return Failed(-32002, f"Resource not found: {what}", {"uri": what})


def internal(why):
    return Failed(-32603, f"Internal error: {why}", {"details": why})


def text(params, name):
    value = params.get(name)
    if not isinstance(value, str):
        raise invalid(f"'{name}' must be a string")
    return value


def absolute(params, name):
    path = text(params, name)
    if not path.startswith("/") or "\0" in path:
        raise invalid(f"'{name}' must be an absolute path")
    return path


def number(params, name):
    """A whole number from 0 on, or None."""
    value = params.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise invalid(f"'{name}' must be a whole number")
    return value
