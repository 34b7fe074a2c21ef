# case: A29
# title: calls with invalid numbers, values and addresses
# users: user root
# options: --timeout 60s --pids 128 --memory 512M
# options-long: --timeout 10m --pids 128 --memory 512M
# heavy: yes
seconds = "300" if LONG else "3"
operations, said = stress(
    "--sysinval",
    "2",
    "--sysbadaddr",
    "2",
    "--enosys",
    "1",
    "--usersyscall",
    "1",
    "-t",
    seconds,
    timeout=int(seconds) + 40,
)
print(operations)
if not any(operations.values()):
    sys.exit(f"the stressors did not run: {said[-500:]}")
done()
