"""fs/read_text_file and fs/write_text_file, with the files of this sandbox."""
import itertools
import os
import stat

from .errors import absolute, internal, invalid, not_found, number, text

SIZE_MAX = 64 << 20


def failed(path, why):
    if isinstance(why, (FileNotFoundError, NotADirectoryError)):
        return not_found(path)
    if isinstance(why, IsADirectoryError):
        return invalid(f"'{path}' is a directory")
    return internal(f"{why.strerror or why}: '{path}'")


def open_regular(path, flags):
    """Waits for nobody: a pipe that no one writes to would be for ever."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    kind = os.fstat(fd).st_mode
    if not stat.S_ISREG(kind):
        os.close(fd)
        raise invalid(f"'{path}' is a directory" if stat.S_ISDIR(kind) else f"'{path}' is no file")
    return fd


def bounded(parts, path):
    kept, size = [], 0
    for part in parts:
        size += len(part)
        if size > SIZE_MAX:
            raise internal(f"'{path}' is too large for a message: read it in parts, with 'line' and 'limit'")
        kept.append(part)
    return b"".join(kept)


def read(params):
    text(params, "sessionId")
    path = absolute(params, "path")
    line, limit = number(params, "line"), number(params, "limit")
    first = max(0, (line or 1) - 1)
    try:
        with open(open_regular(path, os.O_RDONLY), "rb") as source:
            if line is None and limit is None:
                content = bounded(iter(lambda: source.read(1 << 20), b""), path)
            else:
                content = bounded(itertools.islice(source, first, None if limit is None else first + limit), path)
    except OSError as why:
        raise failed(path, why) from why
    return {"content": content.decode("utf-8", "replace")}


def write(params):
    text(params, "sessionId")
    path, content = absolute(params, "path"), text(params, "content")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(open_regular(path, os.O_WRONLY | os.O_CREAT), "wb") as to:
            to.truncate()
            to.write(content.encode("utf-8", "surrogatepass"))
    except FileExistsError as why:  # a file where a directory is needed
        raise not_found(path) from why
    except OSError as why:
        raise failed(path, why) from why
    return {}
