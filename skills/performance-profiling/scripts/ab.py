#!/usr/bin/env python3
"""Compares the wall time of two commands, run alternately.

    ab.py [--runs N] A B

Prints the median, smallest and largest time of each, and B's median as a share of A's with an interval of 95 % (bootstrap).
Exit code: 0 measured; 1 a command failed; 2 wrong arguments.
"""
import argparse
import random
import statistics
import subprocess
import sys
import time


def run(command):
    began = time.perf_counter()
    done = subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        sys.exit(f"exit code {done.returncode} of: {command}\n" + "\n".join(message[-5:]))
    return seconds


def main():
    parser = argparse.ArgumentParser(description="Compares the wall time of two commands, run alternately.")
    parser.add_argument("--runs", type=int, default=15, help="pairs to measure, at least 5")
    parser.add_argument("a")
    parser.add_argument("b")
    args = parser.parse_args()
    if args.runs < 5:
        parser.error("fewer than 5 runs say nothing")
    times = {"A": [], "B": []}
    for at in range(args.runs + 1):
        # The order changes, so that neither always follows the other's warm caches.
        for name in ("A", "B") if at % 2 else ("B", "A"):
            seconds = run(args.a if name == "A" else args.b)
            if at > 0:
                times[name].append(seconds)
    for name, all_times in times.items():
        print(
            f"{name}  median {statistics.median(all_times) * 1000:9.2f} ms"
            f"  smallest {min(all_times) * 1000:9.2f}  largest {max(all_times) * 1000:9.2f}"
        )
    chance = random.Random(1)
    shares = sorted(
        statistics.median(chance.choices(times["B"], k=args.runs))
        / statistics.median(chance.choices(times["A"], k=args.runs))
        for _ in range(2000)
    )
    low, high = shares[50], shares[1949]
    share = statistics.median(times["B"]) / statistics.median(times["A"])
    verdict = "no difference beyond noise" if low <= 1 <= high else ("B is faster" if high < 1 else "B is slower")
    print(f"B takes {share * 100:.1f} % of A (95 %: {low * 100:.1f} to {high * 100:.1f}): {verdict}")


if __name__ == "__main__":
    main()
