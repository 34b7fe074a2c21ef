# case: A27
# title: trinity, random calls with half-sane arguments
# users: user
# options: --timeout 90s --pids 128 --memory 512M
# options-long: --timeout 15m --pids 128 --memory 512M
# heavy: yes
seconds, calls = (300, 1000000) if LONG else (5, 3000)
os.makedirs("/tmp/trinity", exist_ok=True)
os.chdir("/tmp/trinity")
for group in ("vm", "network"):
    # It would wait for ever for its own perf events and sockets of every family.
    p = subprocess.run(
        [
            "timeout",
            "-s",
            "KILL",
            str(seconds),
            tool("trinity"),
            "-q",
            "-a",
            "64",
            "-l",
            "off",
            "-C",
            "4",
            "-N",
            str(calls),
            "--disable-fds=perf,sockets",
            "-g",
            group,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = p.stdout.decode(errors="replace").strip()
    if "Reached limit" not in said and "iterations" not in said:
        sys.exit(f"trinity did not work: {said[-800:]}")
    denied(f"trinity, {group}", said.splitlines()[-1])
done()
