"""What a program that is already running pays for being inside."""
from . import programs
from .programs import INSIDE, PYTHON
from .report import by_case

PAIRS = 15
LIMIT = 1.10
SOME_FILE = "/usr/lib/os-release"  # the host's own file on both sides
MANY_FILES = "/usr/lib/python3"

# name: (what it is, bar, command with {bin} for the programs and {tmp} for a place in memory).
# The counts make one run take about half a second.
WORKLOADS = {
    "syscalls": ("syscall-heavy program, inside / outside", LIMIT,
                 ["{bin}/syscalls", "mix", "50000", SOME_FILE]),
    "python-walk": ("file-heavy program, reading, inside / outside", LIMIT,
                    [PYTHON, "{bin}/files.py", "walk", "10", MANY_FILES]),
    "python-churn": ("file-heavy program, writing, inside / outside", LIMIT,
                     [PYTHON, "{bin}/files.py", "churn", "50", "{tmp}"]),
    "walk": ("nothing but opening and reading files, in C", None,
             ["{bin}/files", "walk", "10", MANY_FILES]),
    "churn": ("nothing but making and removing files, in C", None,
              ["{bin}/files", "churn", "150", "{tmp}"]),
    "null": ("nothing but getppid, in C", None, ["{bin}/syscalls", "null", "3000000"]),
}


def command(words, programs_dir, memory_dir):
    return [word.format(bin=programs_dir, tmp=memory_dir) for word in words]


def overhead(report):
    for name, (what, limit, words) in WORKLOADS.items():
        samples = programs.bench("overhead", PAIRS, name, INSIDE,
                                 *command(words, INSIDE, "/dev/shm"), "::",
                                 *command(words, "/bench", "/tmp"))
        report.save(f"overhead-{name}", samples)
        wall, cpu = by_case(samples), by_case(samples, "cpu_us")
        ours, theirs = f"{name}.inside", f"{name}.outside"
        report.compare(what, wall[ours], wall[theirs], limit,
                       f"; processor time {cpu[ours].p50 / cpu[theirs].p50:.2f}x")
