//! The result of a write: a future that also works for callers without a runtime.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::sync::oneshot;

use crate::error::{Result, StoreError};

/// Resolves once the write is on disk, fully synchronised (or has failed permanently). Dropping it does not cancel the
/// write.
#[must_use = "a write is only sure once its ticket has resolved"]
#[derive(Debug)]
pub struct Ticket<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    /// The writer thread holds the sender; it is dropped without an answer only when the store was closed.
    Waiting(oneshot::Receiver<Result<T>>),
    Ready(Option<Result<T>>),
}

// Nothing in it is ever pinned in place: the receiver is `Unpin`, and `T` only moves.
impl<T> Unpin for Ticket<T> {}

impl<T> Ticket<T> {
    pub(crate) fn new(receiver: oneshot::Receiver<Result<T>>) -> Self {
        Self(State::Waiting(receiver))
    }

    /// A ticket with its result.
    pub(crate) fn ready(result: Result<T>) -> Self {
        Self(State::Ready(Some(result)))
    }

    /// Blocks this thread until the write is on disk.
    ///
    /// # Errors
    /// The error of the write.
    pub fn wait(self) -> Result<T> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        let mut this = pin!(self);
        loop {
            match this.as_mut().poll(&mut cx) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Waiting(receiver) => {
                Pin::new(receiver).poll(cx).map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
            }
            State::Ready(result) => Poll::Ready(result.take().unwrap_or(Err(StoreError::Closed))),
        }
    }
}
