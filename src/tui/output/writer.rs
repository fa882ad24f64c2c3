//! The thread that writes to the terminal. A terminal that has stalled stops only this thread: the loop
//! sees that it is busy, draws nothing, and makes the newest frame when there is room again.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::app::inbox::Post;
use crate::app::msg::{Msg, OutputMsg};

#[derive(Default)]
struct WriterState {
    /// To be written.
    waiting: Option<Vec<u8>>,
    /// Being written.
    busy: bool,
    /// The loop waits for [`OutputMsg::Ready`].
    want: bool,
    closed: bool,
    /// Emptied and given back, so that frames reuse memory.
    spare: Vec<u8>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<WriterState>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop's end. Dropping it writes what waits (for a moment at most) and ends the thread.
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// A way to the same terminal that never blocks: what it takes at once needs no other thread.
    direct: Option<Box<dyn Write + Send>>,
}

impl Writer {
    /// Starts writing to `to`. The thread holds `tell` and ends when the writer is dropped or the terminal
    /// is gone, which it tells as [`OutputMsg::Lost`].
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(mut to: impl Write + Send + 'static, tell: Post) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tiller-output".into()).spawn(move || {
            loop {
                let mut s = mine.lock();
                let bytes = loop {
                    if let Some(bytes) = s.waiting.take() {
                        break bytes;
                    }
                    if s.closed {
                        return;
                    }
                    s = mine.changed.wait(s).unwrap_or_else(PoisonError::into_inner);
                };
                s.busy = true;
                drop(s);
                let done = to.write_all(&bytes).and_then(|()| to.flush());
                let mut s = mine.lock();
                s.busy = false;
                s.spare = bytes;
                s.spare.clear();
                let want = std::mem::take(&mut s.want);
                s.closed |= done.is_err();
                drop(s);
                mine.changed.notify_all();
                if let Err(e) = done {
                    tracing::debug!(error = %e, "the terminal can no longer be written to");
                    let _ = tell.send(Msg::Output(OutputMsg::Lost));
                    return;
                }
                if want {
                    let _ = tell.send(Msg::Output(OutputMsg::Ready));
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread), direct: None })
    }

    /// From now on tries `direct` first. It must lead to where the thread writes, and never block.
    pub fn direct(&mut self, direct: Option<impl Write + Send + 'static>) {
        self.direct = direct.map(|d| Box::new(d) as _);
    }

    /// True when a frame may be made now. When not, [`OutputMsg::Ready`] comes as soon as it may.
    pub fn ready(&self) -> bool {
        let mut s = self.shared.lock();
        let ready = !s.busy && s.waiting.is_none();
        s.want |= !ready;
        ready
    }

    /// An empty string to make the frame in.
    pub fn spare(&self) -> String {
        let mut spare = std::mem::take(&mut self.shared.lock().spare);
        spare.clear();
        String::from_utf8(spare).unwrap_or_default()
    }

    /// Writes; behind what still waits, if something does.
    pub fn write(&mut self, bytes: String) {
        if bytes.is_empty() {
            return;
        }
        let mut s = self.shared.lock();
        match &mut s.waiting {
            Some(w) => w.extend_from_slice(bytes.as_bytes()),
            None => {
                let mut bytes = bytes.into_bytes();
                if let Some(direct) = self.direct.as_mut().filter(|_| !s.busy && !s.closed) {
                    // The thread finds and reports errors.
                    let done = direct.write(&bytes).unwrap_or(0).min(bytes.len());
                    bytes.drain(..done);
                }
                if bytes.is_empty() {
                    s.spare = bytes;
                    return;
                }
                s.waiting = Some(bytes);
            }
        }
        drop(s);
        self.shared.changed.notify_all();
    }

    /// Waits until everything is out, but no longer than `limit`; `false` when it is not.
    pub fn settle(&self, limit: Duration) -> bool {
        let s = self.shared.lock();
        let full = |s: &mut WriterState| (s.busy || s.waiting.is_some()) && !s.closed;
        let (mut s, _) =
            self.shared.changed.wait_timeout_while(s, limit, full).unwrap_or_else(PoisonError::into_inner);
        !full(&mut s)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let done = self.settle(Duration::from_millis(500));
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        // A thread that is stuck in a write cannot be joined; it ends with the process.
        if let Some(t) = self.thread.take().filter(|_| done) {
            let _ = t.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    use crate::app::inbox::inbox;

    const LONG: Duration = Duration::from_secs(90);

    /// A terminal that takes a write only when the test allows it.
    struct Stalled(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Stalled {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            self.1.lock().unwrap().extend_from_slice(b);
            Ok(b.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn u6_a_stalled_terminal_blocks_nobody_and_tells_when_it_is_back() {
        let (go, gate) = sync_channel(8);
        let (tell, heard) = inbox(8);
        let got = Arc::new(Mutex::new(Vec::new()));
        let mut w = Writer::start(Stalled(gate, Arc::clone(&got)), tell).unwrap();
        assert!(w.ready());
        w.write("one".into());
        // While it stalls, frames are refused at once.
        for _ in 0..1000 {
            assert!(!w.ready());
        }
        go.send(()).unwrap();
        assert!(matches!(heard.recv(Some(LONG)), Ok(Msg::Output(OutputMsg::Ready))));
        assert!(w.ready());
        w.write("two".into());
        go.send(()).unwrap();
        assert!(w.settle(LONG));
        assert_eq!(got.lock().unwrap().as_slice(), b"onetwo");
    }

    /// Takes so many bytes, and then none.
    struct Narrow(usize, Arc<Mutex<Vec<u8>>>);

    impl Write for Narrow {
        fn write(&mut self, b: &[u8]) -> io::Result<usize> {
            let n = b.len().min(self.0);
            self.0 -= n;
            self.1.lock().unwrap().extend_from_slice(&b[..n]);
            if n == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(n) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn u6_what_the_direct_way_does_not_take_goes_by_the_thread_and_in_order() {
        for room in 0..9 {
            let (go, gate) = sync_channel(8);
            let (tell, _heard) = inbox(8);
            let got = Arc::new(Mutex::new(Vec::new()));
            let mut w = Writer::start(Stalled(gate, Arc::clone(&got)), tell).unwrap();
            w.direct(Some(Narrow(room, Arc::clone(&got))));
            for part in ["ab", "cd", "ef", "gh"] {
                w.write(part.into());
            }
            (0..4).for_each(|_| go.send(()).unwrap());
            assert!(w.settle(LONG));
            assert_eq!(got.lock().unwrap().as_slice(), b"abcdefgh", "{room}");
        }
    }

    #[test]
    fn u6_a_terminal_that_is_gone_ends_the_loop() {
        let (go, gate) = sync_channel(1);
        let (tell, heard) = inbox(8);
        let mut w = Writer::start(Stalled(gate, Arc::default()), tell).unwrap();
        drop(go);
        w.write("x".into());
        assert!(matches!(heard.recv(Some(LONG)), Ok(Msg::Output(OutputMsg::Lost))));
        drop(w);
    }
}
