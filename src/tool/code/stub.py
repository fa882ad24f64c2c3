"""Tiller's tools, for a script. Made for each run; what follows the line of dashes depends on the session."""
import json as _json, os as _os, re as _re, sys as _sys, threading as _threading


class ToolError(Exception):
    """A call that failed, or that was not allowed. Its text says why."""


class Result(str):
    """The text of a result. `notes`: what the tool says besides; `exit_code`: of a command, else None."""

    notes = ()
    exit_code = None


class _Link:
    """One connection for all threads: each call has a number, and the reply with that number belongs to it."""

    def __init__(self, read, write, other=None, lost=None):
        self._read, self._write, self._other, self._lost = read, write, other, lost
        self._lock = _threading.Lock()
        self._writing = _threading.Lock()
        self._last = 0
        self._waiting = {}
        self._closed = False
        _threading.Thread(target=self._listen, name="tiller", daemon=True).start()

    def send(self, message):
        data = (_json.dumps(message) + "\n").encode()
        with self._writing:
            while data:
                data = data[self._write(data):]

    def call(self, tool, arguments):
        slot = [_threading.Event(), None]
        with self._lock:
            if self._closed:
                raise ToolError("the connection to Tiller is closed")
            self._last += 1
            number = self._last
            self._waiting[number] = slot
        try:
            self.send({"id": number, "tool": tool, "args": arguments})
        except OSError as error:
            raise ToolError("the connection to Tiller is closed: %s" % error) from None
        slot[0].wait()
        reply = slot[1]
        if reply is None:
            raise ToolError("the connection to Tiller is closed")
        if not reply["ok"]:
            raise ToolError(reply["text"])
        result = Result(reply["text"])
        result.exit_code = reply.get("exit")
        return result

    def _listen(self):
        parts = []
        while True:
            try:
                data = self._read(1 << 16)
            except OSError:
                # The script has closed it, and goes on alone.
                break
            if not data:
                if self._lost:
                    self._lost()
                break
            head, *rest = data.split(b"\n")
            parts.append(head)
            for at, piece in enumerate(rest):
                message = _json.loads(b"".join(parts))
                if "id" not in message:
                    self._other(message, b"\n".join(rest[at:]))
                    return
                self._take(message)
                parts = [piece]
        with self._lock:
            self._closed = True
            left, self._waiting = self._waiting, {}
        for slot in left.values():
            slot[0].set()

    def _take(self, message):
        with self._lock:
            slot = self._waiting.pop(message["id"], None)
        if slot:
            slot[1] = message
            slot[0].set()


_link = None


def _open(link=None):
    global _link
    if link is None:
        import socket
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(_os.environ["TILLER_TOOLS_SOCKET"])
        link = _Link(connection.recv, connection.send)
    _link = link


def _call(tool, arguments):
    if _link is None:
        _open()
    return _link.call(tool, {name: value for name, value in arguments.items() if value is not None})


_NUMBERED = _re.compile(r"\s*\d+\t(.*)", _re.S)


def _plain(result):
    """Without line numbers; lines of the tool itself become notes."""
    lines, notes = [], []
    for line in result.split("\n"):
        found = _NUMBERED.match(line)
        lines.append(found.group(1)) if found else notes.append(line)
    if not lines:
        return result
    plain = Result("\n".join(lines) + "\n")
    plain.notes = tuple(note for note in notes if note)
    return plain


class _Server:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, tool):
        def call(**arguments):
            return _call("mcp_call", {"server": self._name, "tool": tool, "arguments": arguments})
        return call

    __getitem__ = __getattr__


class _Servers:
    def __getitem__(self, name):
        return _Server(name)


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    # The names that other programs give to such a tool, however they are written.
    meant = _ALIASES.get("".join(c for c in name.lower() if c.isalnum()))
    if meant:
        return globals()[meant]

    def missing(*_, **__):
        raise ToolError("scripts have no tool %r. There is: %s" % (name, ", ".join(_TOOLS)))
    return missing

# ---------------------------------------------------------------------------
