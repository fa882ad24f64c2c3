"""Sizes of snapshots beside those of Playwright's MCP server (`npm install @playwright/mcp`), on the same pages."""

import glob
import json
import os
import re
import select
import statistics
import subprocess
import time

from page import CALL, Failed, Page, Server, Tools
from solvers import SOLVERS


class Playwright:
    """The other server, over standard input and output."""

    def __init__(self, folder, chromium):
        cli = os.path.join(folder, "node_modules/@playwright/mcp/cli.js")
        arguments = ["--headless", "--no-sandbox", "--isolated", "--executable-path", chromium]
        self.process = subprocess.Popen(
            ["node", os.path.abspath(cli), *arguments],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        self.ask("initialize", {**hello, "clientInfo": {"name": "compare", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        deadline = time.monotonic() + CALL
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            line = self.process.stdout.readline() if ready else b""
            if not line:
                raise Failed(f"no answer to {method}")
            answer = json.loads(line)
            if answer.get("id") == self.last and "method" not in answer:
                return answer.get("result", answer)

    def call(self, name, **arguments):
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(c.get("text", "") for c in result.get("content", []))

    def snapshot(self, url, start):
        self.call("browser_navigate", url=url)
        said = self.call("browser_snapshot")
        if start:
            ref = re.search(r"START.*?\[ref=(\w+)\]|\[ref=(\w+)\].*?: START", said)
            ref = ref[1] or ref[2]
            self.call("browser_click", element="START", ref=ref, target=ref)
            said = self.call("browser_snapshot")
        return said


def ours(page, url, start):
    """What the model gets, and the whole page without the budget."""
    page.open(url)
    if start:
        page.click(page.one(name="START"))
    said = page.call("snapshot")
    kept = re.search(r"the whole page: (.*?)\]", said)
    if not kept:
        return len(said.encode()), len(said.encode())
    return len(said.encode()), os.path.getsize(kept[1])


def large_pages():
    """Documentation of this machine: folder and paths."""
    folders = glob.glob(os.path.expanduser("~/.rustup/toolchains/*/share/doc/rust/html"))
    folders += glob.glob("/usr/share/doc/*/html") + ["/usr/share/doc", "/usr/lib/node_modules"]
    for folder in folders:
        found = [
            os.path.relpath(path, folder)
            for path in sorted(glob.glob(folder + "/**/*.html", recursive=True))
            if 20_000 < os.path.getsize(path) < 400_000
        ]
        if len(found) >= 10:
            return folder, found[:: max(1, len(found) // 10)][:10]
    return "/nonexistent", []


HERE = os.path.dirname(os.path.abspath(__file__))


def small_pages():
    """Pages of the usual kinds: a form, a list, a menu, ..."""
    return [os.path.basename(path) for path in sorted(glob.glob(HERE + "/small/*.html"))]


def compare(options):
    folder, large = large_pages()
    folders = {"/large/": folder, "/small/": HERE + "/small"}
    server = Server({**folders, "/": options.html or "/nonexistent"}, seeded="/core/core.js")
    tasks = options.tasks or sorted(SOLVERS) if options.html else []
    pages = [(name, "/small/" + name, False) for name in small_pages()]
    pages += [(name, f"/miniwob/{name}.html?seed=1", True) for name in tasks]
    pages += [(path[-40:], "/large/" + path, False) for path in large]
    tools = Tools(options.program)
    page, other = Page(tools), Playwright(options.compare, "/usr/bin/chromium")
    usual, small, big, whole = [], [], [], []
    print(f"{'page':40} {'ours':>8} {'whole':>8} {'theirs':>8} {'share':>6}")
    for name, path, start in pages:
        try:
            told, all_of_it = ours(page, server.url(path), start)
            theirs = len(other.snapshot(server.url(path), start).encode())
        except (Failed, TypeError) as error:
            print(f"{name:40} skipped: {str(error)[:80]}")
            continue
        print(f"{name:40} {told:8} {all_of_it:8} {theirs:8} {told / theirs:6.0%}", flush=True)
        if start:
            small.append(told / theirs)
        elif path.startswith("/small/"):
            usual.append(told / theirs)
        else:
            big.append(told / theirs)
            whole.append(all_of_it / theirs)
    tools.end()
    other.process.kill()
    for words, shares in (("small pages", usual), ("pages of tasks", small), ("large pages", big), ("large pages, whole", whole)):
        if shares:
            print(f"median share on {len(shares)} {words}: {statistics.median(shares):.0%}")
    if usual:
        print(f"largest share on small pages: {max(usual):.0%}")
    return 0 if statistics.median(small + big or usual) <= 0.4 and max(usual) <= 0.4 else 1
