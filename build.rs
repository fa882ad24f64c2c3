//! How the optimised program is linked on Linux, so that it starts with few pages.
//!
//! Functions that every start runs lie among thirty megabytes that few people ever run, and the system brings
//! code in by 64 KiB around each that is called: most of the program came in. So those of `assets/link/order.txt`
//! (`cargo xtask order` writes it) come first, side by side. What is not in the list, or was renamed since, lies
//! behind them and works as well.
//!
//! The program stays position independent: it reads hostile bytes beside a C library, so its code has a random
//! address in every process.

use std::{env, error, fs, path};

const ORDER: &str = "assets/link/order.txt";

fn main() -> Result<(), Box<dyn error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ORDER}");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    // Another linker may know none of this.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let own = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    if !is("PROFILE", "release") || !is("TARGET", "x86_64-unknown-linux-gnu") || own {
        return Ok(());
    }
    let script = path::PathBuf::from(env::var("OUT_DIR")?).join("order.ld");
    let order = fs::read_to_string(ORDER)?;
    let names = order.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let sections: String = names.map(|n| format!("    *(.text.{n})\n")).collect();
    fs::write(
        &script,
        format!("SECTIONS {{\n  .text.first : {{\n{sections}  }}\n}}\nINSERT BEFORE .text;\n"),
    )?;
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    Ok(())
}
