//! How the program is linked where the C library is new enough: relative relocations are packed (`DT_RELR`). There are some
//! ninety thousand of them, for tables of functions and texts; unpacked they take 2 MiB of the file, which every start reads.

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations.
const GLIBC: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    let native = env::var("HOST").ok() == env::var("TARGET").ok();
    let glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // The linker of LLVM, which is the default for this processor only, takes the option in all versions.
    if native && glibc && is("CARGO_CFG_TARGET_ARCH", "x86_64") && version().is_some_and(|v| v >= GLIBC) {
        println!("cargo::rustc-link-arg-bin=tiller=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of the C library here: `getconf` prints `glibc 2.36`.
fn version() -> Option<(u32, u32)> {
    let out = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
