//! `tiller mcp serve`: sessions, agents and todo lists as an MCP server on standard input and output.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, thread};

use tiller_mcp_server::{Library, LibraryConfig};
use tiller_protocol::{Notice, NoticeKind};
use tiller_store::OnFailure;

use crate::app::Setup;
use crate::commands::{Exit, say_opening};

/// Time limit for printing the last answer.
const LAST: Duration = Duration::from_secs(5);
/// Bytes of one read.
const CHUNK: usize = 16 << 10;

/// Serves until standard input ends. `all`: the sessions of all folders.
pub(super) fn run(setup: &Setup, all: bool) -> Result<Exit, Notice> {
    let (path, options) = (setup.database(), setup.store_options());
    let library = Library::new(LibraryConfig {
        open: Box::new(move || {
            let options = tiller_store::Options { on_failure: OnFailure::Answer, ..options.clone() };
            let store = tiller_store::Store::open(&path, options).map_err(|e| e.notice())?;
            // To standard error: standard output carries the protocol and nothing else.
            say_opening(&store);
            Ok(store)
        }),
        redactor: Arc::clone(&setup.redactor),
        project: (!all).then(|| setup.project_name()),
        clock: Arc::clone(&setup.clock),
    });
    let failed = |e: io::Error| Notice::new(NoticeKind::Internal, format!("cannot start to serve: {e}"));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(failed)?;
    let input = read_input().map_err(failed)?;
    let (output, printed) = print_output().map_err(failed)?;
    let served = runtime.block_on(async {
        let input = tokio::net::UnixStream::from_std(input).map_err(failed)?;
        let output = tokio::net::UnixStream::from_std(output).map_err(failed)?;
        tiller_mcp_server::serve(library, input, output)
            .await
            .map_err(|why| Notice::new(NoticeKind::User, format!("the client is not understood: {why}")))
    });
    // A client that does not read, and a call that reads, are not waited for.
    let _ = printed.recv_timeout(LAST);
    runtime.shutdown_background();
    served.map(|()| Exit::Done)
}

/// Reads standard input on a thread of its own: it may be anything, and a read of it cannot be given up.
fn read_input() -> io::Result<UnixStream> {
    let (theirs, mut ours) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    // Ends with standard input, when the other end is closed, or with the process.
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut ours);
    })?;
    Ok(theirs)
}

/// Prints on a thread of its own. The receiver gets a word when all is printed, or the client no longer reads.
fn print_output() -> io::Result<(UnixStream, mpsc::Receiver<()>)> {
    let (theirs, mut ours) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    let (tell, printed) = mpsc::sync_channel(1);
    thread::Builder::new().name("stdout".into()).spawn(move || {
        let mut chunk = vec![0; CHUNK];
        let mut out = io::stdout().lock();
        while let Ok(n @ 1..) = ours.read(&mut chunk) {
            if out.write_all(&chunk[..n]).and_then(|()| out.flush()).is_err() {
                break;
            }
        }
        let _ = tell.send(());
    })?;
    Ok((theirs, printed))
}
