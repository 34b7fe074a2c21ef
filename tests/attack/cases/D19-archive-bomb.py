# case: D19
# title: archive bombs
# users: user root
# options: --disk 24M --memory 256M --timeout 60s
# expect-limit: disk
# heavy: yes
import gzip
import io
import tarfile
import zipfile

DISK = 24 << 20
os.chdir(os.path.expanduser("~"))
with gzip.open("zeros.gz", "wb", 9) as f:
    for _ in range(512):
        f.write(bytes(1 << 20))
command("gunzip of 512 MiB in half a MiB", "sh", "-c", "gunzip -c zeros.gz > zeros", timeout=50)
if os.path.getsize("zeros") > DISK:
    pwned(f"{os.path.getsize('zeros')} bytes unpacked")
os.unlink("zeros")

inner = io.BytesIO()
with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("zeros", bytes(32 << 20))
with zipfile.ZipFile("nested.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for i in range(16):
        z.writestr(f"{i}.zip", inner.getvalue())


def unzip():
    for name in zipfile.ZipFile("nested.zip").namelist():
        data = io.BytesIO(zipfile.ZipFile("nested.zip").read(name))
        zipfile.ZipFile(data).extract("zeros", f"out-{name}")


attempt("512 MiB of nested zip", unzip)
subprocess.run("rm -rf out-*", shell=True, check=True)

with tarfile.open("many.tar.gz", "w:gz") as t:
    for i in range(20000):
        t.addfile(tarfile.TarInfo(f"many/{i:0200}"))
command("tar with 20,000 files", "tar", "xzf", "many.tar.gz", timeout=50)
done()
