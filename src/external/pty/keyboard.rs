//! Writes input to a terminal on a separate thread, because a program that does not read would block it. Accepted input
//! is written completely and in order; input beyond the limit is refused as a whole.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tiller_protocol::lock;

/// Maximum bytes of waiting input: several of the largest pastes.
const WAITING: usize = 16 << 20;

#[derive(Default)]
struct Pending {
    waiting: Vec<u8>,
    /// Bytes that the thread is writing: the program has not read all of them.
    writing: usize,
    /// All handles were dropped, or the terminal is gone.
    over: bool,
}

#[derive(Default)]
struct Input {
    state: Mutex<Pending>,
    arrived: Condvar,
}

struct Handle(Arc<Input>);

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.0.state).over = true;
        self.0.arrived.notify_one();
    }
}

/// Types into a terminal. The writing thread ends when the last clone is dropped and everything is written, or when the
/// terminal is gone.
#[derive(Clone)]
pub(crate) struct Keyboard(Arc<Handle>);

impl Keyboard {
    /// For the terminal behind `writer`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn new(mut writer: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let shared = Arc::<Input>::default();
        let write = Arc::clone(&shared);
        let type_all = move || {
            loop {
                let mut state = lock(&write.state);
                state.writing = 0;
                while state.waiting.is_empty() {
                    if state.over {
                        return;
                    }
                    state = write.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                let bytes = std::mem::take(&mut state.waiting);
                state.writing = bytes.len();
                drop(state);
                if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                    lock(&write.state).over = true;
                    return;
                }
            }
        };
        std::thread::Builder::new().name("tiller-pane-keys".into()).stack_size(128 << 10).spawn(type_all)?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    /// Types `bytes`. False: the program does not read the waiting input, or is gone, and none of `bytes` is typed.
    #[must_use]
    pub(crate) fn press(&self, bytes: &[u8]) -> bool {
        let mut state = lock(&self.0.0.state);
        if state.over || state.waiting.len() + state.writing + bytes.len() > WAITING {
            return false;
        }
        state.waiting.extend_from_slice(bytes);
        drop(state);
        self.0.0.arrived.notify_one();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    /// A terminal that reads only on request.
    struct Slow(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Input that arrives while the program does not read is delivered when it does.
    #[test]
    fn nothing_is_lost_while_the_program_does_not_read() {
        let (read, reads) = channel();
        let (tx, rx) = channel();
        let keyboard = Keyboard::new(Box::new(Slow(reads, tx))).unwrap();
        let mut typed = Vec::new();
        for n in 0..5_000_u32 {
            let key = [b'a' + u8::try_from(n % 26).unwrap()];
            assert!(keyboard.press(&key));
            typed.extend_from_slice(&key);
        }
        let paste = vec![b'p'; 4 << 20];
        assert!(keyboard.press(&paste));
        typed.extend_from_slice(&paste);
        assert!(!keyboard.press(&vec![0; WAITING]), "what does not fit is refused");
        drop(read);
        let mut got = Vec::new();
        while got.len() < typed.len() {
            got.extend(rx.recv_timeout(Duration::from_secs(30)).expect("the rest"));
        }
        assert_eq!(got, typed);
    }
}
