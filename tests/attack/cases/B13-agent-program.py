# case: B13
# title: overwriting the agent's program
# users: user root
# control: agent,caps
# control-user: root
for flags, how in ((os.O_RDONLY, "reading"), (os.O_RDWR, "writing"), (os.O_WRONLY, "writing only")):
    for _ in range(200):
        try:
            opens("/proc/1/exe", flags)
        except OSError as e:
            why = name_of(e)
            continue
        pwned(f"the agent's program can be opened for {how}")
        break
    else:
        denied(f"open /proc/1/exe for {how}", why)
attempt("/proc/1/mem", opens, "/proc/1/mem", os.O_RDWR)
attempt("/proc/1/map_files", os.listdir, "/proc/1/map_files")

# A program that is /proc/self/exe itself: the interpreter must be the sandbox's own.
path = "/tmp/shebang"
open(path, "w").write("#!/proc/self/exe\n")
os.chmod(path, 0o755)
try:
    p = subprocess.run([path], stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    if b"sandglass" in p.stdout + p.stderr:
        pwned("#!/proc/self/exe ran a program of the outside")
    else:
        denied("#!/proc/self/exe", f"status {p.returncode}")
except OSError as e:
    denied("#!/proc/self/exe", name_of(e))
done()
