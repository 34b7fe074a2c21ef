"""What unpack.py makes of source code, good and bad."""
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest

from harness import ACP


def member(name, content=b"", **more):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def tar(*members, **how):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **how) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Unpacking(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.home = os.path.realpath(self._directory.name)

    def unpack(self, kind, data, where="project"):
        done = subprocess.run([sys.executable, "-I", str(ACP / "unpack.py"), kind, where], input=data,
                              env={**os.environ, "HOME": self.home}, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stderr.decode().strip()

    def place(self, *names):
        return os.path.join(self.home, "project", *names)

    def read(self, *names):
        with open(self.place(*names), "rb") as f:
            return f.read()


class Tars(Unpacking):
    def refused(self, *members):
        status, said = self.unpack("tar", tar(*members))
        self.assertEqual(status, 65, said)
        self.assertEqual(len(said.splitlines()), 1)
        return said

    def test_what_is_in_it(self):
        data = tar(member("d/", type=tarfile.DIRTYPE, mode=0o750, mtime=1000), member("d/f", b"content", mode=0o640, mtime=2000),
                   member("./x/y/z", b"deep"), member("l", type=tarfile.SYMTYPE, linkname="d/f"),
                   member("h", type=tarfile.LNKTYPE, linkname="d/f"), member("p", type=tarfile.FIFOTYPE),
                   member("é" * 100, b"long"), member("s", b"setuid", mode=0o4755))
        self.assertEqual(self.unpack("tar", data), (0, ""))
        self.assertEqual((self.read("d", "f"), self.read("x", "y", "z"), self.read("é" * 100)), (b"content", b"deep", b"long"))
        self.assertEqual(os.readlink(self.place("l")), "d/f")
        self.assertTrue(os.path.samefile(self.place("h"), self.place("d", "f")))
        self.assertFalse(os.path.lexists(self.place("p")))
        self.assertEqual([os.stat(self.place(*n)).st_mode & 0o7777 for n in (("d",), ("d", "f"), ("s",))], [0o750, 0o640, 0o755])
        self.assertEqual([os.stat(self.place(*n)).st_mtime for n in (("d",), ("d", "f"))], [1000, 2000])

    def test_compressed(self):
        for kind in ("gz", "bz2", "xz"):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode=f"w:{kind}") as archive:
                archive.addfile(member(kind)[0])
            self.assertEqual(self.unpack("tar", out.getvalue()), (0, ""))
            self.assertTrue(os.path.exists(self.place(kind)))

    def test_where_to(self):
        for where in ("~/a/b", "a/b", f"{self.home}/a/b"):
            self.assertEqual(self.unpack("tar", tar(member("f")), where), (0, ""))
            os.unlink(os.path.join(self.home, "a", "b", "f"))

    def test_into_a_directory_that_is_there(self):
        self.unpack("tar", tar(member("f", b"old"), member("kept")))
        self.assertEqual(self.unpack("tar", tar(member("f", b"new"))), (0, ""))
        self.assertEqual((self.read("f"), os.path.exists(self.place("kept"))), (b"new", True))

    def test_climbing_out(self):
        for name in ("../x", "a/../../x", "..", "/x", "//x", "a/.."):
            said = self.refused(member(name, b"x"))
            self.assertIn(name, said)
        self.assertEqual(os.listdir(self.home), ["project"])
        self.assertEqual(os.listdir(self.place()), [])

    def test_climbing_out_by_links(self):
        link = member("out", type=tarfile.SYMTYPE, linkname=self.home)
        self.assertIn("'out/x'", self.refused(link, member("out/x", b"x")))
        self.assertIn("'out/d'", self.refused(link, member("out/d/", type=tarfile.DIRTYPE)))
        self.assertIn("'up/x/y'", self.refused(member("up", type=tarfile.SYMTYPE, linkname=".."), member("up/x/y", b"x")))
        self.assertIn("outside", self.refused(link, member("h", type=tarfile.LNKTYPE, linkname="out/passwd")))
        self.assertIn("'../x'", self.refused(member("h", type=tarfile.LNKTYPE, linkname="../x")))
        self.assertEqual(os.listdir(self.home), ["project"])

    def test_a_link_is_replaced_not_followed(self):
        victim = os.path.join(self.home, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("kept")
        data = tar(member("l", type=tarfile.SYMTYPE, linkname=victim), member("l", b"new"))
        self.assertEqual(self.unpack("tar", data), (0, ""))
        self.assertEqual(self.read("l"), b"new")
        with open(victim, encoding="ascii") as f:
            self.assertEqual(f.read(), "kept")

    def test_what_is_no_tar(self):
        whole = tar(member("f", b"x" * 5000))
        two = tar(member("f", b"x"), member("g", b"y"))
        for data in (b"", b"nonsense" * 100, whole[:3000], two[:1024], two[:1300], two[:1024] + b"x" * 2048, gzip.compress(whole)[:40], b"\x1f\x8b" + b"\0" * 600):
            status, said = self.unpack("tar", data)
            self.assertEqual(status, 65)
            self.assertIn("no whole tar", said)

    def test_members_that_cannot_both_be(self):
        self.assertIn("cannot both be", self.refused(member("a", b"x"), member("a/b", b"y")))
        self.assertIn("cannot both be", self.refused(member("a/b", b"y"), member("a", b"x")))
        self.assertIn("not there", self.refused(member("h", type=tarfile.LNKTYPE, linkname="none")))

    def test_control_characters_are_not_shown(self):
        self.assertNotIn("\x1b", self.refused(member("../\x1b[31m", b"")))


class Bundles(Unpacking):
    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "init.defaultBranch=main",
                               "-C", os.path.join(self.home, "from"), *words], capture_output=True, check=True).stdout

    def bundle(self, *refs):
        os.mkdir(os.path.join(self.home, "from"))
        self.git("init", "-q")
        with open(os.path.join(self.home, "from", "f"), "w", encoding="ascii") as f:
            f.write("content")
        self.git("add", "f")
        self.git("commit", "-qm", "one")
        self.git("branch", "feature/x")
        self.git("tag", "v1")
        return self.git("bundle", "create", "-", *refs)

    def refs(self):
        return subprocess.run(["git", "-C", self.place(), "for-each-ref", "--format=%(refname)"], capture_output=True,
                              check=True, env={**os.environ, "HOME": self.home}).stdout.decode().split()

    def test_all_of_it(self):
        self.assertEqual(self.unpack("bundle", self.bundle("--all")), (0, ""))
        self.assertEqual(self.read("f"), b"content")
        self.assertEqual(self.refs(), ["refs/heads/feature/x", "refs/heads/main", "refs/tags/v1"])

    def test_one_that_does_not_say_what_is_current(self):
        self.assertEqual(self.unpack("bundle", self.bundle("feature/x")), (0, ""))
        self.assertEqual((self.read("f"), self.refs()), (b"content", ["refs/heads/feature/x"]))

    def test_what_is_none(self):
        whole = self.bundle("--all")
        for data in (b"", b"nonsense", whole[:100], whole[:-30]):
            status, said = self.unpack("bundle", data)
            self.assertEqual((status, len(said.splitlines())), (65, 1), said)
        self.assertEqual(sorted(os.listdir(self.home)), ["from"])
