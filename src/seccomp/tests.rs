//! A thread with a filter, and its supervisor beside it.

use super::*;

/// `getpriority(2)` of this thread, through the filter.
fn getpriority() -> io::Result<i64> {
    // SAFETY: it takes two numbers and changes nothing.
    #[allow(unsafe_code, reason = "a harmless call to be supervised")]
    let got = unsafe { libc::syscall(libc::SYS_getpriority, 77_u64, 0_u64) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got) }
}

/// A filter that notifies of `getpriority` with the first argument 77.
fn filter() -> Vec<Instruction> {
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    vec![
        step(0x20, 0, 0, 0),
        step(0x15, 0, 3, u32::try_from(libc::SYS_getpriority).unwrap()),
        step(0x20, 0, 0, 16),
        step(0x15, 0, 1, 77),
        step(0x06, 0, 0, NOTIFY),
        step(0x06, 0, 0, 0x7fff_0000),
    ]
}

/// Runs `work` in a thread with the filter. `None`: this system has no listeners.
fn supervised<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<(Listener, std::thread::JoinHandle<T>)> {
    let (tx, rx) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::spawn(move || {
        // SAFETY: a flag of this thread.
        #[allow(unsafe_code, reason = "what the filter needs")]
        let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(set, 0);
        let ready = install(&filter());
        let ok = ready.is_ok();
        tx.send(ready).unwrap();
        ok.then(work)
    });
    match rx.recv().unwrap() {
        Ok(listener) => Some((listener, std::thread::spawn(move || thread.join().unwrap().unwrap()))),
        Err(e) => {
            println!("skipped: no listener here: {e}");
            None
        }
    }
}

#[test]
fn a_call_gets_the_answer_of_its_supervisor() {
    let Some((listener, thread)) = supervised(|| [getpriority(), getpriority(), getpriority()]) else {
        return;
    };
    listener.prefer_synchronous();
    for answer in [Answer::Return(4711), Answer::Fail(libc::EXDEV), Answer::Continue] {
        let call = listener.receive().unwrap().unwrap();
        assert_eq!((call.number, call.args[0]), (libc::SYS_getpriority, 77));
        assert_ne!(call.thread, 0);
        assert!(listener.waits(call.id));
        assert!(!listener.waits(call.id + 1000));
        assert!(!listener.answer(call.id + 1000, answer).unwrap(), "nothing waits for that");
        assert!(listener.answer(call.id, answer).unwrap());
        assert!(!listener.waits(call.id));
    }
    let [one, two, three] = thread.join().unwrap();
    assert_eq!(one.unwrap(), 4711);
    assert_eq!(two.unwrap_err().raw_os_error(), Some(libc::EXDEV));
    // The kernel knows no such kind of priority.
    assert_eq!(three.unwrap_err().raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn without_a_supervisor_calls_fail() {
    let Some((listener, thread)) = supervised(|| [getpriority(), getpriority()]) else { return };
    // One waits while the listener goes, one comes later.
    let call = listener.receive().unwrap().unwrap();
    assert!(listener.waits(call.id));
    drop(listener);
    for got in thread.join().unwrap() {
        assert_eq!(got.unwrap_err().raw_os_error(), Some(libc::ENOSYS));
    }
}

#[test]
fn an_error_of_zero_is_no_success() {
    let Some((listener, thread)) = supervised(getpriority) else { return };
    let call = listener.receive().unwrap().unwrap();
    listener.answer(call.id, Answer::Fail(0)).unwrap();
    assert_eq!(thread.join().unwrap().unwrap_err().raw_os_error(), Some(libc::EPERM));
}

#[test]
fn malformed_filters_and_descriptors_are_errors() {
    let thread = std::thread::spawn(|| {
        // SAFETY: a flag of this thread.
        #[allow(unsafe_code, reason = "what a filter needs")]
        let _ = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert!(install(&[]).is_err());
        assert!(install(&[Instruction { code: 0xffff, jt: 9, jf: 9, k: 0 }]).is_err());
        assert!(install(&vec![filter()[5]; 70_000]).is_err());
    });
    thread.join().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let listener = Listener::from(OwnedFd::from(file));
    assert!(listener.receive().is_err());
    assert!(listener.answer(1, Answer::Continue).is_err());
    assert!(!listener.waits(1));
}
