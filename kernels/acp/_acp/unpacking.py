"""Source code from standard input into a directory: a tar, or a bundle of git.

What comes in is not trusted, and the directory is all that it may fill: each member's place is found before anything is
written, with the links that earlier members have made. Ends with a status that says who is to blame, and one line on
standard error that says why.
"""
import errno
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib

BAD_INPUT, NO_ROOM, NO_GIT = 65, 73, 127
CHUNK = 1 << 20
SHOWN = 200
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
BROKEN = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, UnicodeError, ValueError, OverflowError)


class Refused(Exception):
    """The input is at fault."""


def shown(name):
    """A name from outside, fit for one line."""
    text = name.encode("utf-8", "backslashreplace").decode()
    text = "".join(c if c.isprintable() else "?" for c in text)
    return f"'{text}'" if len(text) <= SHOWN else f"'{text[:SHOWN]}...'"


# ---- tar -----------------------------------------------------------------------------------------


class Place:
    """The directory, and what may be written in it."""

    def __init__(self, root):
        os.makedirs(root, exist_ok=True)
        self.root = os.path.realpath(root)
        self.directories = []  # (path, mode, time): set when all is done, since writing changes them

    def inside(self, path):
        return path == self.root or path.startswith(self.root.rstrip("/") + "/")

    def of(self, name, what="member"):
        """The path for a name of the archive; None: the root itself."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/"):
            raise Refused(f"its {what} {shown(name)} has an absolute name: it would lie outside the directory")
        if ".." in parts:
            raise Refused(f"its {what} {shown(name)} climbs out of the directory with '..'")
        if not parts:
            return None
        parent = os.path.realpath(os.path.join(self.root, *parts[:-1]))
        if not self.inside(parent):
            raise Refused(f"its {what} {shown(name)} would lie outside the directory: a link leads there")
        return os.path.join(parent, parts[-1])

    def make_parents(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)

    def clear(self, path):
        """Whatever was there is replaced, but a directory."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def finish(self):
        for path, mode, time in reversed(self.directories):
            os.chmod(path, mode)
            os.utime(path, (time, time))


def put_directory(place, path, member):
    if os.path.islink(path) or not os.path.isdir(path):
        place.clear(path)
        os.mkdir(path)
    os.chmod(path, 0o700 | member.mode & 0o777)
    place.directories.append((path, member.mode & 0o777 | 0o700, max(0, member.mtime)))


def put_file(place, path, member, content):
    place.clear(path)
    with open(path, "xb") as to:
        shutil.copyfileobj(content, to, CHUNK)
    os.chmod(path, member.mode & 0o777)
    os.utime(path, (max(0, member.mtime),) * 2)


def put_member(place, archive, member):
    path = place.of(member.name)
    if path is None:
        return
    if member.isdir():
        place.make_parents(path)
        put_directory(place, path, member)
    elif member.isreg():
        place.make_parents(path)
        put_file(place, path, member, archive.extractfile(member))
    elif member.issym():
        place.make_parents(path)
        place.clear(path)
        os.symlink(member.linkname, path)
    elif member.islnk():
        target = place.of(member.linkname, "link to")
        place.make_parents(path)
        if target is None or os.path.islink(target) or not os.path.isfile(target):
            raise Refused(f"its member {shown(member.name)} is a link to {shown(member.linkname)}, which is not there")
        if target != path:
            place.clear(path)
            os.link(target, path)


class Header(tarfile.TarInfo):
    """Notes that the archive's end has come: one that was cut off between two members has none, and tarfile does not
    mind."""
    ended = False

    @classmethod
    def fromtarfile(cls, archive):
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:
            cls.ended = True
            raise


def unpack_tar(stream, root):
    place = Place(root)
    try:
        with tarfile.open(fileobj=stream, mode="r|*", bufsize=CHUNK, tarinfo=Header) as archive:
            for member in archive:
                put_member(place, archive, member)
                archive.members = []  # it would keep them all
        if not Header.ended:
            raise Refused("it is no whole tar: its end is missing")
    except BROKEN as why:
        raise Refused(f"it is no whole tar: {why}") from why
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as why:
        raise Refused(f"two of its members cannot both be: {shown(str(why.filename or ''))}") from why
    place.finish()


# ---- bundle --------------------------------------------------------------------------------------


def git(*words):
    surroundings = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "surrogateescape")
    said = done.stderr.decode("utf-8", "replace").strip()
    if "No space left on device" in said or "Disk quota exceeded" in said:
        raise OSError(errno.ENOSPC, "no space left on the disk")
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))] or said.splitlines()[-1:]
    raise Refused("git cannot use it: " + (shown(lines[0].split(": ", 1)[-1])[1:-1] if lines else "no reason is known"))


def check_out_something(root):
    """A bundle that was made of branches alone does not say which is the current one."""
    names = git("-C", root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    if names:
        branch = next((name for name in ("main", "master") if name in names), names[0])
        git("-C", root, "checkout", "-q", branch, "--")


def has_commit(root):
    try:
        git("-C", root, "rev-parse", "-q", "--verify", "HEAD^{commit}")
    except Refused:
        return False
    return True


def clone(path, root):
    git("clone", "-q", "--", path, root)
    known = set(git("-C", root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())
    for name in git("-C", root, "for-each-ref", "--format=%(refname)", "refs/remotes/origin").split():
        branch = name.removeprefix("refs/remotes/origin/")
        if branch != "HEAD" and branch not in known:
            git("-C", root, "branch", "-q", "--no-track", branch, name)
    git("-C", root, "remote", "remove", "origin")
    if not has_commit(root):
        check_out_something(root)


def unpack_bundle(stream, root):
    head = stream.read(CHUNK)
    if not head.startswith((b"# v2 git bundle\n", b"# v3 git bundle\n")):
        raise Refused("it is no bundle of git")
    with tempfile.TemporaryDirectory(prefix="sandglass-source-") as directory:
        path = os.path.join(directory, "source.bundle")
        with open(path, "xb") as to:
            to.write(head)
            shutil.copyfileobj(stream, to, CHUNK)
        clone(path, root)


# ---- all of it -----------------------------------------------------------------------------------


def end(status, text):
    print(text, file=sys.stderr)
    sys.exit(status)


def main(words):
    if len(words) != 2 or words[0] not in ("tar", "bundle"):
        end(2, "usage: unpack.py tar|bundle DIR")
    root = os.path.join(os.path.expanduser("~"), os.path.expanduser(words[1]))
    if words[0] == "bundle" and not shutil.which("git"):
        end(NO_GIT, "git is not installed in this template")
    try:
        (unpack_tar if words[0] == "tar" else unpack_bundle)(sys.stdin.buffer, root)
    except Refused as why:
        end(BAD_INPUT, str(why))
    except OSError as why:
        if why.errno in FULL:
            end(NO_ROOM, f"{why.strerror}: {shown(str(why.filename))}" if why.filename else str(why.strerror))
        raise
