"""Runs the scripts that Tiller sends: `driver.py` one script, `driver.py keep` one after the other with the same variables.

To keep variables, each run happens in a copy of the process. The copy goes on when Tiller says so; otherwise it ends, and
nothing of the run is left.
"""
import atexit, json, linecache, os, queue, select, sys, threading, traceback, types

# The connection is the standard input. Scripts get an empty one.
_fd = os.dup(0)
_null = os.open(os.devnull, os.O_RDONLY)
os.dup2(_null, 0)
os.close(_null)

import tiller_tools

_main = types.ModuleType("__main__")
sys.modules["__main__"] = _main
# What was read of the connection beyond the last message.
_rest = bytearray()
# What a copy says when it goes on, and when it ends as it should.
_KEPT = b"k"
_ENDED = b"-"


def _message():
    """The next message of Tiller; None at the end."""
    while b"\n" not in _rest:
        data = os.read(_fd, 1 << 16)
        if not data:
            return None
        _rest.extend(data)
    line, _, rest = bytes(_rest).partition(b"\n")
    _rest[:] = rest
    return json.loads(line)


def _execute(job):
    name = job["name"]
    linecache.cache[name] = (len(job["run"]), None, job["run"].splitlines(True), name)
    try:
        exec(compile(job["run"], name, "exec"), _main.__dict__)
        return True
    except SystemExit as end:
        if end.code is None or end.code == 0:
            return True
        print("exit: %s" % (end.code,), file=sys.stderr)
    except BaseException as error:
        frames = error.__traceback__.tb_next
        try:
            traceback.print_exception(type(error), error, frames)
        except BaseException:
            pass
    return False


def _run(job, answers):
    link = tiller_tools._Link(
        lambda n: os.read(_fd, n), lambda data: os.write(_fd, data), lambda *answer: answers.put(answer), lambda: os._exit(1)
    )
    tiller_tools._open(link)
    ok = _execute(job)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    if not job["keep"]:
        try:
            atexit._run_exitfuncs()
        except BaseException:
            pass
    for fd, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except BaseException:
            pass
        try:
            os.write(fd, job["mark"].encode())
        except OSError:
            pass
    try:
        link.send({"done": ok})
    except OSError:
        os._exit(0 if ok else 1)
    return ok


def _verdict(mine, child):
    """What the copy says at its end, and its status if it is over. Something that it started may hold the pipe."""
    # Its descriptor may have any number.
    poll = select.poll()
    poll.register(mine, select.POLLIN)
    while True:
        if poll.poll(50):
            said = os.read(mine, 1)
            return (said, None) if said else (b"", os.waitpid(child, 0)[1])
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            said = os.read(mine, 1) if poll.poll(0) else b""
            return said, status


def _exactly(fd, length):
    data = b""
    while len(data) < length:
        more = os.read(fd, length - len(data))
        if not more:
            break
        data += more
    return data


def _loop(ends):
    """Runs scripts. A script that ends its process ends the session: what the first process ends with goes to `ends`."""
    while True:
        job = _message()
        if job is None:
            os.write(ends, bytes([0]))
            return
        mine, its = os.pipe()
        child = os.fork()
        if child:
            os.close(its)
            said, status = _verdict(mine, child)
            if said == _KEPT and status is None:
                os._exit(0)
            if said != _ENDED:
                signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
                os.write(ends, bytes([os.WEXITSTATUS(status) if signal is None else 128 + signal]))
                os._exit(0)
            # The copy has read on for this process.
            _rest.extend(_exactly(mine, int.from_bytes(_exactly(mine, 8), "big")))
            os.close(mine)
            if status is None:
                os.waitpid(child, 0)
            continue
        os.close(mine)
        answers = queue.Queue()
        _run(job, answers)
        verdict, rest = answers.get()
        if not verdict.get("keep"):
            data = _ENDED + len(rest).to_bytes(8, "big") + rest
            while data:
                data = data[os.write(its, data):]
            os._exit(0)
        _rest[:] = rest
        try:
            os.write(its, _KEPT)
            os.close(its)
        except OSError:
            # The script has ended the process before, or closed the pipe: this one goes on alone.
            pass


def _start():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if len(sys.argv) < 2:
        job = _message()
        sys.argv = [job["name"]]
        os._exit(0 if _run(job, queue.Queue()) else 1)
    # The first process only waits, so that a copy can take the place of the one before it.
    alive, held = os.pipe()
    if os.fork():
        os.close(held)
        os.close(_fd)
        end = os.read(alive, 1)
        # Without a word: all of them were killed.
        os._exit(end[0] if end else 137)
    os.close(alive)
    sys.argv = ["script.py"]
    _loop(held)
    os._exit(0)


_main.__name__ = "__main__"
# What is printed is shown while the script runs.
sys.stdout.reconfigure(line_buffering=True)
_start()
