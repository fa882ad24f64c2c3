# In front of each escape that is written in Python: names of the scene, and bare system calls.
import ctypes, errno, mmap, os, signal, socket, struct, sys, time

OUT, WORK, HOME, TOKEN = "@OUT@", "@WORK@", "@HOME@", "@TOKEN@"
PORT, PORT6, UDP, UDP6, RELAY = @PORT@, @PORT6@, @UDP@, @UDP6@, @RELAY@
VICTIM, BUFFER, DESCRIPTOR, SEGMENT = @VICTIM@, @BUFFER@, @DESCRIPTOR@, @SEGMENT@
HELLO = TOKEN.encode()
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *args):
    """A system call by its number (x86_64); -1 becomes an OSError."""
    words = [a if isinstance(a, (bytes, ctypes.Array, ctypes.Structure, type(None))) else ctypes.c_long(a) for a in args]
    got = libc.syscall(ctypes.c_long(number), *words)
    if got == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return got
