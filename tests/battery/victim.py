# A process outside of the sandbox: a buffer, a shared memory segment, an open file. Prints its state for each line that it reads.
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)  # PR_SET_PTRACER to any, where Yama asks for it
buffer = ctypes.create_string_buffer(b"intact\0" + os.environ.get("BATTERY_SECRET", "").encode(), 256)
segment = libc.shmget(int(sys.argv[1]), 4096, 0o1600)
address = libc.shmat(segment, None, 0) if segment >= 0 else None
if address:
    ctypes.memmove(address, b"intact\0", 7)
file = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o644)
print(os.getpid(), ctypes.addressof(buffer), file, flush=True)
for line in sys.stdin:
    shared = ctypes.string_at(address) if address else b"none"
    print(buffer.value, shared, flush=True)
    if line.strip() == "end":
        break
if segment >= 0:
    libc.shmctl(segment, 0, None)
