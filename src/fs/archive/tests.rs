//! What is taken of archives and folders, and what is refused.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::*;

const LIMITS: Limits = Limits { entries: 20, bytes: 1 << 20, depth: 4 };

/// One entry of a tar file.
fn tar(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(if name.ends_with(".sh") { b"0000755" } else { b"0000644" });
    block[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    sum(&mut block);
    block.extend(bytes);
    block.resize(block.len().div_ceil(512) * 512, 0);
    block
}

fn sum(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u64 = block[..512].iter().map(|b| u64::from(*b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

fn packed(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One entry of a zip file: name, mode of Unix, content, and whether it is compressed.
struct Zipped(&'static str, u32, Vec<u8>, bool);

fn zip(entries: &[Zipped]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for Zipped(name, mode, content, deflate) in entries {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let data = if *deflate {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        } else {
            content.clone()
        };
        let at = out.len() as u32;
        let mut common = Vec::new();
        common.extend([20, 0, 0, 8, if *deflate { 8 } else { 0 }, 0, 0, 0, 0, 0]);
        common.extend(crc.sum().to_le_bytes());
        common.extend((data.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(data);
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(&common);
        directory.extend([0; 6]);
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = out.len() as u32;
    let count = (entries.len() as u16).to_le_bytes();
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count);
    out.extend(count);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// Unpacks into `into` of a new folder.
fn unpacked(bytes: &[u8]) -> (tempfile::TempDir, Result<(), String>) {
    let tmp = tempfile::tempdir().unwrap();
    let (archive, into) = (tmp.path().join("archive"), tmp.path().join("into"));
    std::fs::create_dir(&into).unwrap();
    std::fs::write(&archive, bytes).unwrap();
    let result = unpack(&archive, &into, LIMITS);
    (tmp, result)
}

fn refused(bytes: &[u8], why: &str) {
    let (tmp, result) = unpacked(bytes);
    let error = result.expect_err(why);
    assert!(error.contains(why), "{why}: {error}");
    assert!(!error.contains(['\n', '\u{1b}']), "{error:?}");
    let names: Vec<_> = std::fs::read_dir(tmp.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is written beside the folder: {names:?}");
}

#[test]
fn each_format_gives_the_same_files() {
    let long = format!("mine/{}/b.sh", "d".repeat(120));
    let pax = format!("path={long}\n");
    let pax = format!("{} {pax}", pax.len() + 4);
    let tar_file = packed(&[
        tar("pax_global_header", b'g', b"17 comment=abcde\n"),
        tar("mine/", b'5', b""),
        tar("mine/SKILL.md", b'0', b"text"),
        tar("././@PaxHeader", b'x', pax.as_bytes()),
        tar("mine/short.sh", b'0', &[b'x'; 700]),
        tar("mine/.git/config", b'0', b"[core]"),
    ]);
    let zip_file = zip(&[
        Zipped("mine/", 0o040_755, Vec::new(), false),
        Zipped("mine/SKILL.md", 0o100_644, b"text".to_vec(), false),
        Zipped(Box::leak(long.clone().into_boxed_str()), 0o100_755, vec![b'x'; 700], true),
    ]);
    for bytes in [tar_file.clone(), gz(&tar_file), zip_file] {
        let (tmp, result) = unpacked(&bytes);
        result.unwrap();
        let folder = root(&tmp.path().join("into"), "SKILL.md");
        assert!(folder.ends_with("mine"));
        assert_eq!(std::fs::read(folder.join("SKILL.md")).unwrap(), b"text");
        let script = tmp.path().join("into").join(&long);
        assert_eq!(std::fs::read(&script).unwrap(), [b'x'; 700]);
        assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!folder.join(".git").exists());
    }
}

#[test]
fn entries_that_lead_out_or_are_no_files_are_refused() {
    for (name, kind, why) in [
        ("../out", b'0', "leads out"),
        ("/etc/out", b'0', "leads out"),
        ("a/../../out", b'0', "leads out"),
        ("a\\..\\out", b'0', "leads out"),
        ("", b'0', "leads out"),
        ("link", b'2', "is a link"),
        ("hard", b'1', "is a link"),
        ("device", b'3', "special file"),
        ("block", b'4', "special file"),
        ("pipe", b'6', "special file"),
        ("sparse", b'S', "special file"),
        ("a\nb", b'0', "cannot be shown"),
        ("a\u{1b}[31m", b'0', "cannot be shown"),
        ("a\u{202e}dm.hs", b'0', "cannot be shown"),
        ("a\u{200b}", b'0', "cannot be shown"),
        ("1/2/3/4/5", b'0', "nested too deep"),
    ] {
        refused(&packed(&[tar(name, kind, b"x")]), why);
        refused(&gz(&packed(&[tar(name, kind, b"x")])), why);
    }
    refused(&packed(&[tar("a", b'0', b"1"), tar("a", b'0', b"2")]), "there twice");
    refused(&packed(&[tar("Skill.md", b'0', b"1"), tar("SKILL.md", b'0', b"2")]), "case does not count");
    refused(&packed(&[tar("A/x", b'0', b"1"), tar("a/y", b'0', b"2")]), "case does not count");
    refused(&packed(&[tar("a", b'0', b"1"), tar("a/b", b'0', b"2")]), "there twice");
    // A long name that leads out, by either way of saying it.
    refused(&packed(&[tar("x", b'L', b"../../out\0"), tar("a", b'0', b"1")]), "leads out");
    refused(&packed(&[tar("x", b'x', b"18 path=../../out\n"), tar("a", b'0', b"1")]), "leads out");
    refused(&packed(&[tar("x", b'x', b"999 path=a\n"), tar("a", b'0', b"1")]), "extended header");
    refused(&packed(&[tar("x", b'x', b"9 size=9\n"), tar("a", b'0', b"1")]), "extended header");
    let z = |name, mode| zip(&[Zipped(name, mode, b"x".to_vec(), false)]);
    for (bytes, why) in [
        (z("../out", 0o100_644), "leads out"),
        (z("/out", 0o100_644), "leads out"),
        (z("link", 0o120_777), "is a link"),
        (z("pipe", 0o010_644), "special file"),
        (z("a\rb", 0o100_644), "cannot be shown"),
    ] {
        refused(&bytes, why);
    }
    let twice = [Zipped("a", 0, b"1".to_vec(), false), Zipped("A", 0, b"2".to_vec(), false)];
    refused(&zip(&twice), "case does not count");
}

#[test]
fn bombs_and_damage_are_refused() {
    // 8 MB of zeros in some KB.
    let zeros = vec![0; 8 << 20];
    let bomb = packed(&[tar("a", b'0', &zeros)]);
    refused(&gz(&bomb), "more than 1 MB");
    refused(&zip(&[Zipped("a", 0, zeros, true)]), "more than 1 MB");
    // The same bytes again and again in small files.
    let many: Vec<_> = (0..3).map(|n| tar(&format!("f{n}"), b'0', &vec![7; 500_000])).collect();
    refused(&packed(&many), "larger than 1 MB");
    refused(&gz(&packed(&many)), "more than 1 MB");
    let count: Vec<_> = (0..30).map(|n| tar(&format!("f{n}"), b'0', b"")).collect();
    refused(&packed(&count), "more than 20 files");
    let mut long = tar("a", b'0', b"x");
    long[124..135].copy_from_slice(format!("{:011o}", 1 << 30).as_bytes());
    sum(&mut long);
    refused(&long, "too early");
    // Cut anywhere, or with a wrong byte: a sentence, never a panic.
    let whole = packed(&[tar("a/b", b'0', &[b'x'; 600]), tar("c", b'0', b"y")]);
    let zipped =
        zip(&[Zipped("a/b", 0o100_644, vec![b'x'; 600], true), Zipped("c", 0o100_644, b"y".to_vec(), false)]);
    for bytes in [&whole, &gz(&whole), &zipped] {
        for cut in (0..bytes.len()).step_by(7) {
            let _ = unpacked(&bytes[..cut]);
            let mut wrong = bytes.clone();
            wrong[cut] ^= 0x41;
            let _ = unpacked(&wrong);
        }
    }
    refused(&gz(&whole)[..40], "broken");
    refused(&zipped[..zipped.len() - 30], "too early");
    refused(b"hello", "neither a .tar");
    refused(b"", "neither a .tar");
    // Another name in the local header, and a content that its sum does not fit.
    let mut other = zipped.clone();
    other[30] = b'z';
    refused(&other, "two names");
    let mut other = zip(&[Zipped("c", 0, b"yyyy".to_vec(), false)]);
    other[31] = b'z';
    refused(&other, "damaged");
    let mut other = zipped;
    other[6] |= 1;
    let at = other.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    other[at + 8] |= 1;
    refused(&other, "encrypted");
}

#[test]
fn a_folder_is_copied_without_links_and_without_git() {
    let tmp = tempfile::tempdir().unwrap();
    let from = tmp.path().join("from");
    std::fs::create_dir_all(from.join("scripts")).unwrap();
    std::fs::create_dir_all(from.join(".git/hooks")).unwrap();
    std::fs::write(from.join("SKILL.md"), "text").unwrap();
    std::fs::write(from.join("scripts/run"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(from.join("scripts/run"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    let into = |name: &str| {
        let into = tmp.path().join(name);
        std::fs::create_dir(&into).unwrap();
        into
    };
    let to = into("to");
    copy(&from, &to, LIMITS).unwrap();
    assert_eq!(std::fs::read_to_string(to.join("SKILL.md")).unwrap(), "text");
    let mode = std::fs::metadata(to.join("scripts/run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "no bits beside those of the owner");
    assert!(!to.join(".git").exists());
    std::os::unix::fs::symlink("/etc", from.join("link")).unwrap();
    assert!(copy(&from, &into("linked"), LIMITS).unwrap_err().contains("link is a link"));
    std::fs::remove_file(from.join("link")).unwrap();
    std::fs::write(from.join("big"), vec![0; 1 << 20]).unwrap();
    assert!(copy(&from, &into("big"), LIMITS).unwrap_err().contains("more than 1 MB"));
    std::fs::remove_file(from.join("big")).unwrap();
    std::fs::create_dir_all(from.join("1/2/3/4/5")).unwrap();
    assert!(copy(&from, &into("deep"), LIMITS).unwrap_err().contains("too deep"));
}
