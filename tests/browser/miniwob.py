#!/usr/bin/env python3
"""Solves tasks of MiniWoB by scripted use of Tiller's browser tools alone: what a snapshot says, and calls.

    miniwob.py --html FOLDER [--program PROGRAM] [--tries N] [--goal N] [--short] [--share X] [TASK...]
    miniwob.py [--html FOLDER] --compare FOLDER_OF_PLAYWRIGHT_MCP

`--html`: the folder `html` of the package `miniwob`. The reward is read from the page's own display. A task counts as
solved when it is in more than half of its tries. Ends with 0 when at least `--goal` tasks are solved.
"""

import argparse
import os
import re
import sys
import time

sys.dont_write_bytecode = True

from page import Failed, Page, Server, Tools
from solvers import SLOW, SOLVERS

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "../../target/debug/examples/browser_calls")
REWARD = re.compile(r"Last reward: (-?[\d.]+)")


def attempt(page, url, name):
    """The reward, and why there is none."""
    page.open(url)
    page.click(page.one(name="START"))
    page.begun = time.monotonic()
    page.look()
    try:
        SOLVERS[name](page)
        why = ""
    except (Failed, IndexError, KeyError, ValueError, TypeError, ZeroDivisionError) as error:
        why = f"{type(error).__name__}: {error}"
    # A task that has failed ends by itself when its time is over; only those that may still win are waited for.
    deadline = time.monotonic() + (0 if why else 4)
    while True:
        found = [REWARD.search(text) for text in page.look().texts()]
        found = [f for f in found if f]
        if found or time.monotonic() > deadline:
            break
    reward = float(found[0][1]) if found else 0.0
    return reward, "" if reward > 0 else why or ("no reward" if not found else "wrong")


def solve(options):
    server = Server({"/": options.html}, seeded="/core/core.js")
    names = options.tasks or sorted(SOLVERS)
    if options.short and not options.tasks:
        names = [n for n in names if n not in SLOW][::5]
        print(f"{len(names)} of {len(SOLVERS)} tasks, without those that take long")
    tools = Tools(options.program)
    page = Page(tools)
    solved, tried, begun = 0, 0, time.monotonic()
    print(f"{'task':32} solved  seconds")
    for name in names:
        tried += 1
        good, whys, start, last = 0, [], time.monotonic(), 0
        needed = options.tries // 2 + 1
        for seed in range(1, options.tries + 1):
            # What is decided already needs no further try.
            if not options.every and (good >= needed or good + options.tries - seed + 1 < needed):
                break
            last = seed
            try:
                reward, why = attempt(page, server.url(f"/miniwob/{name}.html?seed={seed}"), name)
            except Failed as error:
                reward, why = 0.0, f"failed: {error}"
                if tools.process.poll() is not None:
                    tools = Tools(options.program)
                    page = Page(tools)
            good += reward > 0
            if why:
                whys.append(f"seed {seed}: {why}")
        solved += good >= needed
        mark = "" if good >= needed else "  NOT"
        print(f"{name:32} {good} of {last}  {time.monotonic() - start:7.1f}{mark}", flush=True)
        if options.verbose or good < needed:
            for why in whys:
                print(f"    {why[:options.width]}")
    tools.end()
    print(f"{solved} of {tried} tasks solved in {time.monotonic() - begun:.0f} s")
    if options.share:
        return 0 if solved >= options.share * tried else 1
    return 0 if solved >= options.goal else 1


def main():
    parser = argparse.ArgumentParser(description="MiniWoB by Tiller's browser tools")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--html")
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--every", action="store_true", help="every try, also of tasks that are decided")
    parser.add_argument("--goal", type=int, default=60)
    parser.add_argument("--share", type=float, help="in place of the goal: share of the tried tasks")
    parser.add_argument("--width", type=int, default=300, help="longest explanation")
    parser.add_argument("--short", action="store_true", help="each fifth task, without those that take long")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--compare", metavar="FOLDER", help="sizes beside those of Playwright's MCP server")
    options = parser.parse_args()
    if options.compare:
        from compare import compare

        return compare(options)
    if not options.html:
        parser.error("--html is missing")
    return solve(options)


if __name__ == "__main__":
    sys.exit(main())
