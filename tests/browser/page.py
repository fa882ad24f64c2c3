"""The browser tools as a script calls them, what a snapshot says, and a server for pages of this machine."""

import http.server
import json
import os
import re
import select
import subprocess
import threading
import time

# Longest wait for the result of one call, in seconds.
CALL = 60


class Failed(Exception):
    """A call was refused, or a page does not have what a solver looks for."""


class Tools:
    """The program that takes calls of the browser tools, one a line."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def call(self, tool, **args):
        line = json.dumps({"tool": tool, "args": args}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], CALL)
        if not ready:
            self.process.kill()
            raise Failed(f"no result of {tool} in {CALL} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the program ended")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(CALL)
        except subprocess.TimeoutExpired:
            self.process.kill()


LINE = re.compile(
    r'^(?P<indent> *)(?:e(?P<ref>\d+) ?)?(?P<role>[A-Za-z-]+\d?(?= |$))? ?'
    r'(?P<name>"[^"]*")?(?: ?= (?P<value>"[^"]*"))? ?(?P<rest>.*)$'
)
# A link within a text.
LINK = re.compile(r"\[e(\d+) ([^\]]*)\]")
# Items that share a line.
NEXT = re.compile(r' (?=e\d+ (?:[A-Za-z-]+ )?")')
# The role of items, where the line around them says it.
ITEMS = {
    "menu": "menuitem",
    "menubar": "menuitem",
    "tablist": "tab",
    "listbox": "option",
    "combobox": "option",
    "tree": "treeitem",
    "radiogroup": "radio",
    "nav": "link",
}


class Element:
    """A line of a snapshot, or an item of one."""

    def __init__(self, line, usual=""):
        found = LINE.match(line)
        self.depth = len(found["indent"])
        self.ref = found["ref"] and "e" + found["ref"]
        self.role = found["role"] or (usual if self.ref else "")
        if self.role == "-":
            self.role = "listitem"
        self.name = LINK.sub(r"\2", (found["name"] or '""')[1:-1])
        self.value = (found["value"] or '""')[1:-1]
        self.rest = found["rest"]
        self.line = line

    @classmethod
    def read(cls, lines):
        """All elements of the lines of a page."""
        elements, around = [], []
        for line in lines:
            depth = len(line) - len(line.lstrip(" "))
            around = [(d, role) for d, role in around if d < depth]
            usual = ITEMS.get(around[-1][1], "") if around else ""
            found = []
            # An item that names no role has that of the one before it, or the one that is usual there.
            for part in NEXT.split(line[depth:]):
                found.append(cls(" " * depth + part, usual or (found[-1].role if found else "")))
            elements += found
            around.append((depth, found[-1].role))
            if line.lstrip(" -").startswith('"'):
                elements += [cls(f'{" " * depth}e{ref} link "{name}"') for ref, name in LINK.findall(line)]
        return elements

    def attribute(self, name):
        found = re.search(rf"[ <]{name}=(.*?)(?= [a-z-]+=| #[0-9a-f]{{6}}|>)", self.rest)
        return found[1] if found else ""

    @property
    def tag(self):
        found = re.search(r"<([a-z0-9]+)", self.rest)
        return found[1] if found else ""

    @property
    def color(self):
        found = re.search(r"#([0-9a-f]{6})\b", self.rest)
        return found[1] if found else ""

    @property
    def box(self):
        """Left, top, width, height."""
        found = re.search(r"(\d+)x(\d+)(?: at (-?\d+),(-?\d+))?$", self.rest)
        if not found:
            raise Failed(f"no size in {self.line!r}")
        width, height, left, top = (int(n or 0) for n in found.groups())
        return left, top, width, height

    @property
    def middle(self):
        left, top, width, height = self.box
        return left + width / 2, top + height / 2


class Page:
    """The page that the tools have open, and its last snapshot."""

    def __init__(self, tools):
        self.tools = tools
        self.elements = []
        self.begun = 0.0

    def call(self, tool, **args):
        said = self.tools.call(tool, **args)
        if said.startswith("error") or "[untrusted " not in said:
            raise Failed(f"{tool} {args}: {said.strip()[:300]}")
        return said

    def open(self, url):
        return self.read(self.call("navigate", url=url))

    def look(self):
        return self.read(self.call("snapshot"))

    def read(self, snapshot):
        lines = [l for l in snapshot.splitlines() if l and not l.startswith(("[", "Page \""))]
        self.elements = Element.read(lines)
        return self

    def click(self, element, **more):
        if isinstance(element, Element):
            element = element.ref
        return self.call("click", ref=element, **more)

    def type(self, element, text):
        return self.call("type", ref=element.ref, text=str(text))

    def press(self, key, times=1):
        return self.call("press", key=key, times=times) if times > 0 else ""

    def all(self, role=None, name=None, **more):
        """Elements with a reference by role and name; each a text, a set of texts, or a pattern."""

        def fits(value, wanted):
            if wanted is None:
                return True
            if isinstance(wanted, (set, tuple, list)):
                return value in wanted
            if isinstance(wanted, re.Pattern):
                return bool(wanted.search(value))
            return value == wanted

        found = [e for e in self.elements if e.ref and fits(e.role, role) and fits(e.name, name)]
        for key, wanted in more.items():
            found = [e for e in found if fits(getattr(e, key), wanted)]
        return found

    def one(self, role=None, name=None, nth=0, **more):
        found = self.all(role, name, **more)
        if len(found) <= nth:
            raise Failed(f"no {role} {name!r} {more or ''}: {[e.line for e in self.elements][:40]}")
        return found[nth]

    def texts(self):
        return [e.name for e in self.elements if not e.role]

    @property
    def query(self):
        return self.texts()[0]

    def wait(self, until, seconds=8.0):
        """Looks again until a function of this page returns something."""
        deadline = time.monotonic() + seconds
        while True:
            found = until(self)
            if found:
                return found
            if time.monotonic() > deadline:
                raise Failed("waited in vain")
            self.look()


class Server:
    """Serves folders on loopback: `{"/path": folder}`."""

    def __init__(self, folders, seeded=""):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def translate_path(self, path):
                path = path.split("?")[0].split("#")[0]
                for prefix, folder in folders.items():
                    if path.startswith(prefix):
                        return os.path.join(folder, os.path.normpath(path[len(prefix):]).lstrip("/."))
                return "/nonexistent"

            def do_GET(self):
                # The library of the tasks has a seeded generator; the seed comes in the address.
                if not seeded or self.path.split("?")[0] != seeded:
                    return super().do_GET()
                with open(self.translate_path(self.path), "rb") as file:
                    body = file.read()
                body += b"\nif (core.QueryString.seed) Math.seedrandom(core.QueryString.seed);\n"
                self.send_response(200)
                self.send_header("content-type", "text/javascript")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"
