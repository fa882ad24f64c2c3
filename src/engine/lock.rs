//! Locks of plain data.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A holder that panicked leaves plain data that is still right.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
