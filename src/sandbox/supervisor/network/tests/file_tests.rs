//! Real commands that use sockets in the file system, in each way of confining.

use std::os::unix::net::UnixListener;

use super::*;

const FILES: &str = "
def connected(name):
    c = socket.socket(socket.AF_UNIX); c.settimeout(60); c.connect(name)
    return c
def serve(name, queue=8):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(queue)
    return s
";

fn nets() -> impl Iterator<Item = Net> {
    [Method::Landlock, Method::Bubblewrap].into_iter().filter_map(net_with)
}

/// A server of the person's.
fn foreign_file(path: &Path) -> UnixListener {
    let server = UnixListener::bind(path).unwrap();
    server.set_nonblocking(true).unwrap();
    server
}

fn file_reached(server: &UnixListener) -> bool {
    match server.accept() {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::WouldBlock => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_server_in_the_workspace_answers_its_own_commands() {
    for net in nets() {
        let script = format!(
            "{FILES}
import multiprocessing.connection as mc, tempfile
os.mkdir('sub'); os.symlink('sub/b.sock', 'link'); kept = []
for name in ['a.sock', os.path.abspath('sub/b.sock'), os.path.join(tempfile.gettempdir(), 'c.sock')]:
    s = serve(name); kept.append(s)
    assert s.getsockname() == name
    c = connected(name); a, _ = s.accept()
    a.sendall(b'walnut'); assert c.recv(6) == b'walnut'
    assert c.getpeername() == name
connected('link')
# As a program does that gives its address to its children.
listener = mc.Listener(family='AF_UNIX')
def ask():
    with mc.Client(listener.address) as client: client.send('walnut')
t = threading.Thread(target=ask); t.start()
assert listener.accept().recv() == 'walnut'; t.join()
# One that does not wait.
c = socket.socket(socket.AF_UNIX); c.setblocking(False); c.connect('a.sock')
# What is gone, what is none, what nothing listens on.
fails(lambda: connected('none.sock'), errno.ENOENT)
open('file', 'w').close(); fails(lambda: connected('file'), errno.ECONNREFUSED)
b = socket.socket(socket.AF_UNIX); b.bind('bound.sock'); fails(lambda: connected('bound.sock'), errno.ECONNREFUSED)
"
        );
        net.works(&script);
        let refused = net.refused();
        assert!(refused.iter().all(|line| line.contains("bound.sock")), "{refused:?}");
    }
}

#[test]
fn a_full_server_in_a_file_holds_up_only_its_own_clients() {
    for net in nets() {
        net.works(&format!(
            "{FILES}
s = serve('a.sock', 0); clients = []
def client():
    c = socket.socket(socket.AF_UNIX); c.connect('a.sock')
    clients.append(c); c.sendall(b'x'); c.recv(1)
threads = [threading.Thread(target=client) for _ in range(4)]
for t in threads: t.start()
def full():
    c = socket.socket(socket.AF_UNIX); c.setblocking(False)
    return c.connect_ex('a.sock') == errno.EAGAIN
while not full(): pass
other = serve('b.sock')
for _ in range(20): connected('b.sock'); other.accept()
for _ in range(4):
    a, _ = s.accept()
    while a.recv(1) == b'': a, _ = s.accept()
    a.sendall(b'y')
for t in threads: t.join(100); assert not t.is_alive()
"
        ));
    }
}

/// Names outside, names of the person's servers in the workspace, names that the whole machine sees.
#[test]
fn no_other_socket_is_reached_or_made() {
    for net in nets() {
        let top = net.place.top.clone();
        let outside = foreign_file(&top.join("outside/out.sock"));
        // Of another process: what listens here is known by the process that does it.
        let inside = Running(
            Command::new("python3")
                .arg("-c")
                .arg(
                    "import socket; s = socket.socket(socket.AF_UNIX); s.bind('new.sock'); s.listen(8)\n\
                      import os; os.rename('new.sock', 'person.sock'); open('listens', 'w').write('x')\n\
                      while True: s.accept()",
                )
                .current_dir(top.join("work"))
                .spawn()
                .unwrap(),
        );
        wait_for(&top.join("work/listens"));
        std::os::unix::fs::symlink(top.join("outside/out.sock"), top.join("work/to-out.sock")).unwrap();
        let out = top.join("outside").display().to_string();
        net.works(&format!(
            "{FILES}
out = '{out}'
for name in [out + '/out.sock', 'to-out.sock', 'person.sock', '../outside/out.sock', '/proc/self/cwd/person.sock']:
    fails(lambda: connected(name), errno.EACCES, errno.ECONNREFUSED)
fails(lambda: serve(out + '/new.sock'), errno.EACCES, errno.EROFS)
fails(lambda: serve('.git/hooks/pre-commit'), errno.EACCES, errno.EROFS, errno.EADDRINUSE)
fails(lambda: serve('\\0tiller-test'), errno.EPERM, errno.EINVAL)
fails(lambda: connected('\\0tiller-test'), errno.EPERM)
# A name that was the session's own when it began to listen.
s = serve('own.sock'); os.rename('own.sock', 'kept.sock'); os.rename('person.sock', 'own.sock')
fails(lambda: connected('own.sock'), errno.EACCES, errno.ECONNREFUSED)
connected('kept.sock')
# A relative name that means the person's server in another folder when it listens.
os.mkdir('sub'); os.rename('own.sock', 'sub/x.sock')
s = socket.socket(socket.AF_UNIX); s.bind('x.sock'); os.chdir('sub'); s.listen(8)
fails(lambda: connected('x.sock'), errno.EACCES, errno.ECONNREFUSED)
for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    fails(lambda: socket.socket(socket.AF_UNIX, kind), errno.EPERM)
"
        ));
        assert!(!file_reached(&outside), "{:?}", net.confined.method);
        drop(inside);
        assert!(net.refused().iter().any(|line| line.contains("out.sock")));
    }
}

/// The kernel must not be let to connect after a look at what another thread can exchange.
#[test]
fn a_number_that_gets_another_socket_meanwhile_reaches_nothing() {
    for net in nets() {
        let top = net.place.top.clone();
        let outside = foreign_file(&top.join("outside/out.sock"));
        let out = top.join("outside/out.sock").display().to_string();
        net.works(&format!(
            "{FILES}
libc = ctypes.CDLL(None, use_errno=True)
tcp = server(); port = tcp.getsockname()[1]; own = serve('a.sock')
def accept(s):
    while True:
        try: s.accept()[0].close()
        except OSError: return
for s in (tcp, own): threading.Thread(target=accept, args=(s,), daemon=True).start()
address = (ctypes.c_char * 110).from_buffer(mmap.mmap(-1, 4096))
files = struct.pack('=H', 1) + {out:?}.encode() + b'\\0'
mine = struct.pack('=H', 1) + b'a.sock\\0'
inet = struct.pack('=H', 2) + struct.pack('!H', port) + socket.inet_aton(HOME) + bytes(8)
u, t = socket.socket(socket.AF_UNIX), socket.socket()
slot = os.dup(t.fileno()); stop = False; sys.setswitchinterval(1e-4)
def swap():
    while not stop:
        for fd, at in ((u.fileno(), files), (t.fileno(), inet), (u.fileno(), mine)):
            os.dup2(fd, slot); address[:len(at)] = at
threading.Thread(target=swap, daemon=True).start()
for n in range(600):
    libc.connect(slot, address, 110 if n % 2 else 16)
    if n % 20 == 0: u, t = socket.socket(socket.AF_UNIX), socket.socket()
stop = True
"
        ));
        assert!(!file_reached(&outside), "{:?}", net.confined.method);
    }
}

#[test]
fn another_session_does_not_reach_it_and_the_person_does() {
    for net in nets() {
        let running = net.start(&format!(
            "{FILES}
s = serve('a.sock'); open('ready', 'w').write('x')
for _ in range(2): s.accept()[0].sendall(b'walnut')
"
        ));
        let work = net.place.top.join("work");
        wait_for(&work.join("ready"));
        let ask = format!("{FILES}\nassert connected('a.sock').recv(6) == b'walnut'");
        net.works(&ask);
        let other =
            Net { place: net.place, servers: Servers::default(), ..net_with(net.confined.method).unwrap() };
        let other = Net { confined: net.confined, ..other };
        assert!(!other.run(&ask).status.success(), "another session");
        assert!(other.refused().iter().any(|line| line.contains("connecting to") && line.contains("a.sock")));
        let mut said = String::new();
        let mut person = std::os::unix::net::UnixStream::connect(work.join("a.sock")).unwrap();
        person.read_to_string(&mut said).unwrap();
        assert_eq!(said, "walnut");
        running.ends();
    }
}

/// With a network of its own, connections are made in it as ever.
#[test]
fn the_network_of_a_namespace_works_as_before() {
    let Some(net) = net_with(Method::Bubblewrap) else { return };
    net.works(
        "
s = server(); at = s.getsockname()
c = socket.create_connection(at, 60); s.accept()[0].sendall(b'walnut'); assert c.recv(6) == b'walnut'
c = socket.socket(); c.setblocking(False)
assert c.connect_ex(at) in (0, errno.EINPROGRESS)
assert select.select([], [c], [], 60)[1] and c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind((HOME, 0)); v.connect(u.getsockname()); v.send(b'x'); assert u.recv(1) == b'x'
fails(lambda: socket.create_connection(('192.0.2.1', 80), 60), errno.ENETUNREACH)
s.close(); fails(lambda: socket.create_connection(at, 60), errno.ECONNREFUSED)
",
    );
    assert_eq!(net.refused(), ["connecting to 192.0.2.1:80 (python3)"]);
}
