//! Real commands that use loopback under Landlock alone, and sockets in the file system (`file_tests`).

mod file_tests;

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tiller_tool::shell::{CommandWatch, Launch};

use crate::confine::{Confined, Method};
use crate::confinement::Confinement;
use crate::launcher::Step;
use crate::network::Servers;
use crate::policy::{Network, Profile};
use crate::testing::{Place, methods};

const TIMEOUT: Duration = Duration::from_secs(120);

/// Begins each script.
const PRELUDE: &str = "
import ctypes, errno, mmap, os, select, socket, struct, sys, threading, time
HOME = '127.0.0.1'
def fails(what, *numbers):
    try: what()
    except OSError as e: assert not numbers or e.errno in numbers, e; return
    raise SystemExit('let through: line %d' % sys._getframe(1).f_lineno)
def server(family=socket.AF_INET, address=HOME, port=0, queue=8):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(queue)
    return s
";

struct Net {
    place: Place,
    confined: Confined,
    servers: Servers,
    watch: CommandWatch,
}

/// `None`: this machine lacks something.
fn net() -> Option<Net> {
    net_with(Method::Landlock)
}

fn net_with(method: Method) -> Option<Net> {
    let python = Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success());
    if !methods().contains(&method) || !Confinement::find().notification || !python {
        println!("skipped: this needs {}, seccomp user notification and python3", method.name());
        return None;
    }
    let place = Place::new();
    let mut confined = place.confined(Profile::Workspace, method);
    confined.policy.network = Network::Loopback;
    Some(Net { place, confined, servers: Servers::default(), watch: CommandWatch::default() })
}

impl Net {
    fn launch(&self, script: &str) -> Launch {
        let name = format!("{}.py", blake(script));
        std::fs::write(self.place.top.join("work").join(&name), [PRELUDE, script].concat()).unwrap();
        let launch = self.place.launch(&format!("exec python3 {name}"));
        self.confined.watched_among(
            launch,
            Step::Exec,
            (&self.watch, &std::sync::Arc::default()),
            &self.servers,
            None,
        )
    }

    fn run(&self, script: &str) -> Output {
        self.place.start(self.launch(script))
    }

    fn works(&self, script: &str) {
        let out = self.run(script);
        assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A script that goes on while the test does something. It waits for files of the workspace.
    fn start(&self, script: &str) -> Running {
        let launch = self.launch(script);
        let child = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.env)
            .current_dir(&launch.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Running(child)
    }

    fn refused(&self) -> Vec<String> {
        self.watch.blocked.take().into_iter().filter(|a| !a.minor).map(|a| a.words()).collect()
    }
}

/// A name for a script.
fn blake(script: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    script.hash(&mut hasher);
    hasher.finish()
}

struct Running(Child);

impl Running {
    fn ends(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The text of a file, once it is there.
fn wait_for(path: &Path) -> String {
    let until = Instant::now() + TIMEOUT;
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(Instant::now() < until, "{} does not come", path.display()),
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// A server of the person's.
fn foreign(address: &str) -> Option<(TcpListener, u16)> {
    let server = TcpListener::bind((address, 0)).ok()?;
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    Some((server, port))
}

fn reached(server: &TcpListener) -> bool {
    match server.accept() {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::WouldBlock => false,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn a_server_and_its_client_in_one_command() {
    let Some(net) = net() else { return };
    net.works(
        "
for family, address in [(socket.AF_INET, HOME), (socket.AF_INET, '0.0.0.0'), (socket.AF_INET, 'localhost')]:
    s = server(family, address)
    c = socket.create_connection((HOME, s.getsockname()[1]), 20)
    a, peer = s.accept()
    assert s.getsockname()[0] == HOME and peer[0] == HOME and c.getpeername() == s.getsockname()
    a.sendall(b'walnut'); assert c.recv(6) == b'walnut'
# The next one on the same port, at once.
port = s.getsockname()[1]
a.close(); c.close(); s.close()
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((HOME, port)); s.listen(); socket.create_connection((HOME, port), 20)
s.close()
fails(lambda: socket.create_connection((HOME, port), 20), errno.ECONNREFUSED)
# Without an address of its own.
s = socket.socket(); s.listen(); assert s.getsockname()[0] == HOME
socket.create_connection(s.getsockname(), 20)
",
    );
    assert_eq!(net.refused(), [""; 0]);
}

#[test]
fn a_server_on_every_address_of_ipv6_is_reached_by_both_families() {
    let Some(net) = net() else { return };
    if TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: there is no IPv6 here");
        return;
    }
    net.works(
        "
s = socket.socket(socket.AF_INET6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(('::', 0)); s.listen(); port = s.getsockname()[1]
assert s.getsockname()[0] == '::ffff:127.0.0.1', s.getsockname()
for address in [HOME, '::1', '::ffff:127.0.0.1', 'localhost']:
    socket.create_connection((address, port), 20); s.accept()
for only in ['::', '::1']:
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((only, 0)); s.listen(); port = s.getsockname()[1]
    assert s.getsockname()[0] == '::1'
    socket.create_connection(('::1', port), 20); s.accept()
    fails(lambda: socket.create_connection((HOME, port), 20), errno.ECONNREFUSED)
",
    );
}

#[test]
fn connections_that_do_not_wait_are_seen_by_poll() {
    let Some(net) = net() else { return };
    net.works(
        "
s = server()
for _ in range(50):
    c = socket.socket(); c.setblocking(False)
    assert c.connect_ex(s.getsockname()) == errno.EINPROGRESS
    assert select.select([], [c], [], 20)[1] and c.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    a, _ = s.accept(); a.sendall(b'x')
    assert select.select([c], [], [], 20)[0] and c.recv(1) == b'x'
    assert c.connect_ex(s.getsockname()) in (0, errno.EISCONN)
c = socket.socket(); c.settimeout(20); c.connect(s.getsockname())
assert c.gettimeout() == 20
import asyncio
async def main():
    async def answer(r, w): w.write(await r.readexactly(6)); w.close()
    own = await asyncio.start_server(answer, HOME, 0)
    r, w = await asyncio.open_connection(*own.sockets[0].getsockname())
    w.write(b'walnut'); assert await r.read() == b'walnut'
asyncio.run(main())
",
    );
}

#[test]
fn a_server_of_the_person_is_not_reached_by_any_spelling() {
    let Some(net) = net() else { return };
    let (home, port) = foreign("127.0.0.1").unwrap();
    let (all, port_of_all) = foreign("0.0.0.0").unwrap();
    let (six, port_of_six) = foreign("::1").unzip();
    let script = format!(
        "
for port in [{port}, {port_of_all}, {}]:
    for family, address in [(2, HOME), (2, '0.0.0.0'), (2, '127.0.0.2'), (10, '::1'), (10, '::'),
                            (10, '::ffff:127.0.0.1'), (10, '::ffff:0.0.0.0'), (10, '::127.0.0.1')]:
        for flags in [0, socket.SOCK_NONBLOCK]:
            c = socket.socket(family, socket.SOCK_STREAM | flags)
            fails(lambda: c.connect((address, port)), errno.ECONNREFUSED, errno.ENETUNREACH)
            fails(lambda: c.sendall(b'x')) ; fails(lambda: c.getpeername())
            fails(lambda: c.sendto(b'x', 0x20000000, (address, port)))
            fails(lambda: c.sendmsg([b'x'], [], 0x20000000, (address, port)))
            fails(lambda: c.sendto(b'x', (address, port)))
            fails(lambda: c.setsockopt(socket.IPPROTO_TCP, 30, 1), errno.ENOPROTOOPT)
# A server of its own beside it changes nothing.
s = server(); fails(lambda: socket.create_connection((HOME, {port}), 20), errno.ECONNREFUSED)
",
        port_of_six.unwrap_or(port)
    );
    net.works(&script);
    let refused = net.refused();
    assert!(refused.contains(&format!("connecting to 127.0.0.1:{port} (python3)")), "{refused:?}");
    assert!(!reached(&home) && !reached(&all) && !six.is_some_and(|six| reached(&six)));
}

#[test]
fn other_sockets_and_options_that_lead_elsewhere_are_refused() {
    let Some(net) = net() else { return };
    net.works(
        "
for kind in [(2, 2, 0), (10, 2, 17), (2, 3, 1), (2, 1, 262), (2, 1, 132), (2, 1, 256), (10, 1, 262), (2, 6, 33),
             (2, 5, 132), (1, 1, 1), (1, 2, 0), (1, 5, 0), (1, 3, 0), (17, 3, 0), (40, 1, 0), (16, 3, 4), (21, 5, 0), (43, 1, 0)]:
    fails(lambda: socket.socket(*kind), errno.EPERM)
s = server()
for level, name in [(0, 4), (0, 8), (0, 64), (41, 57), (41, 6), (41, 54), (6, 19), (6, 30), (6, 31), (1, 25), (1, 62), (1, 36)]:
    fails(lambda: s.setsockopt(level, name, b'\\1\\0\\0\\0lo\\0\\0'), errno.ENOPROTOOPT)
for level, name in [(6, 1), (1, 9), (0, 1), (6, 23)]:
    s.setsockopt(level, name, 1)
s.setsockopt(1, 15, 1)
assert s.getsockopt(1, 15) == 0
# Ports of the system, addresses of the machine, and an end of a connection that was made.
for address in [(HOME, 80), ('192.0.2.1', 0), ('255.255.255.255', 0), ('224.0.0.1', 0)]:
    fails(lambda: socket.socket().bind(address), errno.EACCES, errno.EADDRNOTAVAIL)
fails(lambda: socket.create_connection(('192.0.2.7', 443), 5), errno.ENETUNREACH)
libc = ctypes.CDLL(None, use_errno=True)
c = socket.create_connection(s.getsockname(), 20)
assert libc.connect(c.fileno(), bytes(16), 16) == -1 and c.getpeername() == s.getsockname()
for call in (libc.bind, libc.connect):
    for address, length in [(None, 16), (8, 16), (bytes(128), -1), (bytes(128), 0), (bytes(128), 1), (bytes(200), 129)]:
        assert call(c.fileno(), ctypes.c_char_p(address) if isinstance(address, bytes) else address, length) == -1
    assert call(-1, bytes(16), 16) == -1 and ctypes.get_errno() == errno.EBADF
    assert call(0, bytes(16), 16) == -1 and ctypes.get_errno() == errno.ENOTSOCK
assert libc.listen(0, 1) == -1 and ctypes.get_errno() == errno.ENOTSOCK
a, b = socket.socketpair()
a.bind('there'); fails(lambda: a.listen(), errno.EINVAL); fails(lambda: a.connect('there'), errno.ECONNREFUSED)
# The C library asks for the addresses of this machine.
assert socket.getaddrinfo('localhost', 80) and socket.if_nameindex()
",
    );
    assert!(net.refused().contains(&"connecting to 192.0.2.7:443 (python3)".to_owned()));
}

/// A process changes the address, and a thread the socket behind the number, while the call is served.
#[test]
fn an_address_or_a_descriptor_that_changes_meanwhile_leads_nowhere_else() {
    let Some(net) = net() else { return };
    let (server, port) = foreign("127.0.0.1").unwrap();
    let script = format!(
        "
libc = ctypes.CDLL(None)
own = server(queue=64); mine = own.getsockname()[1]; bad = {port}
def accept():
    while True:
        try: own.accept()[0].close()
        except OSError: return
threading.Thread(target=accept, daemon=True).start()
address = (ctypes.c_char * 16).from_buffer(mmap.mmap(-1, 4096))
address[:] = struct.pack('=H', 2) + struct.pack('!H', mine) + socket.inet_aton(HOME) + bytes(8)
ports = [struct.pack('!H', p) for p in (mine, bad)]
flips = os.fork()
if flips == 0:
    while os.getppid() != 1:
        for _ in range(10000):
            address[2:4] = ports[1]; address[2:4] = ports[0]
    os._exit(0)
done = rounds = 0
while rounds < 2000 or not 0 < done < rounds:
    c = socket.socket(); rounds += 1
    if libc.connect(c.fileno(), address, 16) == 0:
        assert c.getpeername()[1] == mine; done += 1
    c.close()
os.kill(flips, 9)
# The number is that of a server's socket, then of another.
address[2:4] = ports[0]
other = socket.socket(); slot = os.dup(other.fileno()); stop = False; sys.setswitchinterval(1e-4)
def swap():
    while not stop:
        for fd in (other.fileno(), own.fileno(), 0):
            os.dup2(fd, slot)
threading.Thread(target=swap, daemon=True).start()
for n in range(300):
    libc.connect(slot, address, 16); libc.bind(slot, address, 16)
stop = True
"
    );
    net.works(&script);
    assert!(!reached(&server));
}

/// The port of a server that has ended is that of a program of the person's.
#[test]
fn a_port_that_another_program_took_over_is_not_reached() {
    let Some(net) = net() else { return };
    let work = net.place.top.join("work");
    let running = net.start(
        "
s = server(); at = s.getsockname()
socket.create_connection(at, 20); s.accept()[0].close(); s.close()
open('new', 'w').write(str(at[1])); os.rename('new', 'port')
while not os.path.exists('taken'): time.sleep(0.01)
fails(lambda: socket.create_connection(at, 20), errno.ECONNREFUSED)
",
    );
    let port: u16 = wait_for(&work.join("port")).parse().unwrap();
    // Connections of before may still have an end there.
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    let at: std::net::SocketAddr = ([127, 0, 0, 1], port).into();
    let taken = rustix::net::bind(&socket, &at).and_then(|()| rustix::net::listen(&socket, 8));
    if taken.is_err() {
        println!("skipped: a third program has taken the port");
        return;
    }
    let server = TcpListener::from(socket);
    server.set_nonblocking(true).unwrap();
    std::fs::write(work.join("taken"), "x").unwrap();
    running.ends();
    assert!(!reached(&server));
}

/// A client that waits for a full server keeps nothing else of the command from going on.
#[test]
fn a_server_with_a_full_queue_holds_up_only_its_own_clients() {
    let Some(net) = net() else { return };
    net.works(
        "
s = server(queue=0); at = s.getsockname(); clients = []
def client():
    c = socket.create_connection(at); clients.append(c); c.sendall(b'x'); c.recv(1)
threads = [threading.Thread(target=client) for _ in range(6)]
for t in threads: t.start()
# One that does not want to wait is refused, and none is left half made.
def refuses():
    c = socket.socket(); c.setblocking(False)
    return c.connect_ex(at) == errno.ECONNREFUSED
while not refuses(): pass
other = server()
for n in range(20):
    os.mkdir('d%d' % n); os.rmdir('d%d' % n)
    socket.create_connection(other.getsockname(), 20); other.accept()
assert any(t.is_alive() for t in threads)
for _ in range(6):
    a, _ = s.accept()
    while a.recv(1) == b'': a, _ = s.accept()
    a.sendall(b'y')
for t in threads: t.join(60); assert not t.is_alive()
",
    );
}

#[test]
fn a_server_is_reached_by_other_commands_of_its_session_and_by_the_person() {
    let Some(net) = net() else { return };
    let work = net.place.top.join("work");
    let running = net.start(
        "
s = server(address='0.0.0.0')
open('new', 'w').write(str(s.getsockname()[1])); os.rename('new', 'port')
for _ in range(2): s.accept()[0].sendall(b'walnut')
",
    );
    let port: u16 = wait_for(&work.join("port")).parse().unwrap();
    let ask = format!("assert socket.create_connection((HOME, {port}), 20).recv(6) == b'walnut'");
    net.works(&ask);
    let other = Net { servers: Servers::default(), watch: CommandWatch::default(), ..self::net().unwrap() };
    assert!(!other.run(&ask).status.success(), "another session");
    assert_eq!(other.refused(), [format!("connecting to 127.0.0.1:{port} (python3)")]);
    let mut said = String::new();
    TcpStream::connect(("127.0.0.1", port)).unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "walnut");
    running.ends();
}

#[test]
fn without_a_supervisor_there_are_no_sockets() {
    let Some(net) = net() else { return };
    let script = "python3 -c 'import socket; socket.socket()'";
    let out = net.place.start(net.confined.change(net.place.launch(script), Step::Exec, None));
    assert!(!out.status.success(), "{out:?}");
}

/// What was not answered before the end of the supervisor fails, and a killed client leaves no thread behind that tries on.
#[test]
fn a_killed_client_ends_the_trials_for_it() {
    let Some(net) = net() else { return };
    let out = net.run(
        "
s = server(queue=0)
for _ in range(4):
    if os.fork() == 0:
        socket.create_connection(s.getsockname()); time.sleep(3600)
open('new', 'w').write('x')
os.kill(0, 9)
",
    );
    assert!(!out.status.success());
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let name =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        tasks.map(name).filter(|name| name.trim() == "tiller-connect").count()
    };
    let until = Instant::now() + TIMEOUT;
    while threads() > 0 {
        assert!(Instant::now() < until, "a thread still tries");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    std::io::stdout().flush().unwrap();
}
