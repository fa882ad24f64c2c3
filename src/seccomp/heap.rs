//! How the C library's heap is set up, where it is glibc.

/// Lets all threads allocate from one arena. Otherwise glibc gives threads up to eight for each processor; what a thread
/// frees stays in its arena, and one allocation keeps the pages around it. A session of an hour took 80 MiB so, and takes 60.
///
/// Before the first thread: a thread keeps the arena that it has. Returns false where the setting was refused.
pub fn share_one_arena() -> bool {
    // SAFETY: `mallopt` takes two integers and has no other precondition; glibc takes its own lock.
    #[allow(unsafe_code, reason = "mallopt(3) is in no safe crate")]
    let done = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    done == 1
}
