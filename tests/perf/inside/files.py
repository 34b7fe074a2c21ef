"""A Python program that does little but use files; prints wall and processor time in microseconds.

files.py walk COUNT DIR    COUNT times: read every file below DIR
files.py churn COUNT DIR   COUNT times: make, write, read and remove 100 small files in DIR
"""
import os
import sys
import tempfile
import time


def walk(count, top):
    for _ in range(count):
        for directory, _, names in os.walk(top):
            for name in names:
                path = os.path.join(directory, name)
                if not os.path.islink(path):
                    with open(path, "rb") as file:
                        file.read()


def churn(count, parent):
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        paths = [os.path.join(directory, f"{i}.txt") for i in range(100)]
        for _ in range(count):
            for path in paths:
                with open(path, "w", encoding="utf-8") as file:
                    file.write("content\n" * 500)
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    file.read()
                os.remove(path)


def main():
    work = {"walk": walk, "churn": churn}[sys.argv[1]]
    wall, cpu = time.perf_counter(), time.process_time()
    work(int(sys.argv[2]), sys.argv[3])
    print((time.perf_counter() - wall) * 1e6, (time.process_time() - cpu) * 1e6)


main()
