//! The processor time of a thread: a measure that other programs on the machine hardly change.

use std::time::Duration;

/// Processor time that the calling thread has used. Differences of it limit the work of a test where the clock on the
/// wall would measure the load of the machine.
pub fn thread_cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
