//! Brings the files of a source into a temporary folder. The only place of `tiller skills` that uses the network, and only
//! for what the user named.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use tiller_fs::archive;
use tiller_protocol::Notice;
use tiller_provider::transport::http::{Http, NetEnv};
use tiller_skills::packs::{Index, LIMITS, Origin, Source, Staged, stage, verify, write_built_in};
use tiller_watch::git;

use super::user;
use crate::app::Setup;

/// Time limit for a repository or an archive.
const FETCH: Duration = Duration::from_secs(180);
const CONNECT: Duration = Duration::from_secs(15);
/// Longest silence of a server.
const SILENCE: Duration = Duration::from_secs(30);
/// How often a download looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Redirects that are followed.
const REDIRECTS: usize = 5;
/// Bytes of a registry at most.
const INDEX: u64 = 4 << 20;

/// A pack that may be installed.
pub(super) struct Candidate {
    pub(super) staged: Staged,
    pub(super) origin: Origin,
    /// Removed with this value.
    _scratch: tempfile::TempDir,
}

/// Whether Ctrl-C was pressed. Without it, the programs that fetch would run on. There is one at a time.
pub(super) struct Interrupt {
    hit: Arc<AtomicBool>,
    noted: Vec<SigId>,
    usual: Arc<AtomicBool>,
}

/// While it is set, the signals end the process, as usual. The handlers that look at it stay for the life of the process:
/// a second pair of them would have its own flag, and end the process while the signal is to be noted.
static USUAL: OnceLock<Arc<AtomicBool>> = OnceLock::new();

impl Interrupt {
    /// From now on Ctrl-C is noted only.
    pub(super) fn listen() -> Self {
        const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];
        let usual = USUAL.get_or_init(|| {
            let usual = Arc::new(AtomicBool::new(false));
            for signal in SIGNALS {
                // Without the handler the signal ends the process at once, and its scratch folder is left.
                let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&usual));
            }
            usual
        });
        usual.store(false, Ordering::Relaxed);
        let hit = Arc::new(AtomicBool::new(false));
        let note = |signal| signal_hook::flag::register(signal, Arc::clone(&hit)).ok();
        Self { noted: SIGNALS.into_iter().filter_map(note).collect(), usual: Arc::clone(usual), hit }
    }

    /// Whether it was pressed.
    pub(super) fn hit(&self) -> bool {
        self.hit.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.usual.store(true, Ordering::Relaxed);
        for id in self.noted.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

/// What a user wrote as a source.
pub(super) fn source(text: &str) -> Result<Source, Notice> {
    Source::read(text, &git::is_url).map_err(|why| user(format!("{why}.")))
}

/// Fetches a source, which is written `text`. `name`: how the pack is called; what it is called itself by default.
pub(super) fn fetch(
    setup: &Setup,
    (source, text): (Source, &str),
    name: Option<&str>,
    stop: &Interrupt,
) -> Result<Candidate, Notice> {
    let scratch = tiller_tool::shell::own_folder::make("pack");
    let scratch = scratch.map_err(|e| user(format!("There is no room for temporary files: {e}.")))?;
    let default = source.pack_name();
    // What the registry lists is called as it says.
    let listed = match &source {
        Source::Registry(name) => Some(name.clone()),
        _ => None,
    };
    let packed = matches!(source, Source::Archive(_) | Source::Download(_) | Source::Registry(_));
    let at = scratch.path();
    let origin = files(setup, source, text, at, stop).map_err(|why| {
        user(format!("The pack {} was not installed: {}.", shown(text), why.trim_end_matches('.')))
    })?;
    let fail = |why: String| {
        user(format!("The pack {} was not installed: {}.", shown(text), why.trim_end_matches('.')))
    };
    let (from, pack) = (at.join("files"), at.join("pack"));
    // An archive is often made of one folder.
    let from = if packed { archive::root(&from, "SKILL.md") } else { from };
    std::fs::create_dir(&pack).map_err(|e| fail(e.to_string()))?;
    let mut staged = stage(&from, &pack, &default).map_err(fail)?;
    if let Some(name) = name.or(listed.as_deref()) {
        if !tiller_skills::is_name(name) {
            return Err(user("The name of a pack has lower-case letters, digits and single -."));
        }
        name.clone_into(&mut staged.name);
    }
    Ok(Candidate { staged, origin, _scratch: scratch })
}

/// The index of the registry of the settings, and its address.
pub(super) fn registry(setup: &Setup, stop: &Interrupt) -> Result<(Index, String), String> {
    let Some(url) = setup.config.config.skills.registry.clone() else {
        return Err(
            "no registry is set: `registry = \"https://...\"` in [skills] of config.toml names one".into()
        );
    };
    let bytes =
        download(setup, &url, INDEX, stop).map_err(|why| format!("the registry could not be read: {why}"))?;
    Ok((Index::read(&bytes)?, url))
}

/// Writes the files into the folder `files` of `at`.
fn files(setup: &Setup, source: Source, text: &str, at: &Path, stop: &Interrupt) -> Result<Origin, String> {
    let into = at.join("files");
    std::fs::create_dir(&into).map_err(|e| format!("there is no room for temporary files: {e}"))?;
    let mut origin = Origin { source: text.to_owned(), ..Origin::default() };
    match source {
        Source::Folder(path) => {
            origin.source = absolute(&path);
            archive::copy(&path, &into, LIMITS)?;
        }
        Source::Archive(path) => {
            origin.source = absolute(&path);
            archive::unpack(&path, &into, LIMITS)?;
        }
        Source::Download(url) => {
            archive::unpack_bytes(
                &download(setup, &url, archive::packed_limit(LIMITS), stop)?,
                &into,
                LIMITS,
            )?;
        }
        Source::Git { url, reference } => {
            origin.commit = Some(repository(&url, reference.as_deref(), at, &into, stop)?);
        }
        Source::BuiltIn(name) => write_built_in(&name, &into)?,
        Source::Registry(name) => {
            let (index, url) = registry(setup, stop)?;
            let entry = index.find(&name)?;
            origin.registry = Some(url);
            match Source::read(&entry.source, &git::is_url) {
                Ok(Source::Download(url)) => {
                    let bytes = download(setup, &url, archive::packed_limit(LIMITS), stop)?;
                    let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
                    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
                    verify(entry, &hash)?;
                    archive::unpack_bytes(&bytes, &into, LIMITS)?;
                }
                Ok(Source::Git { url, .. }) => {
                    let commit = entry.commit.as_deref().filter(|commit| is_commit(commit));
                    let commit =
                        commit.ok_or("the registry names no commit for it, so it cannot be checked")?;
                    let found = repository(&url, Some(commit), at, &into, stop)?;
                    if found != commit {
                        return Err("the repository has another commit than the registry names".into());
                    }
                    origin.commit = Some(found);
                }
                _ => return Err("the registry names no address that packs are fetched from".into()),
            }
        }
    }
    Ok(origin)
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn absolute(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// A source for people: one line, bounded.
pub(super) fn shown(text: &str) -> String {
    crate::commands::sessions::one_line(&text.chars().take(200).collect::<String>())
}

/// Unpacks a commit. Returns its hash.
fn repository(
    url: &str,
    reference: Option<&str>,
    at: &Path,
    into: &Path,
    stop: &Interrupt,
) -> Result<String, String> {
    let scratch = at.join("git");
    std::fs::create_dir(&scratch).map_err(|e| format!("there is no room for temporary files: {e}"))?;
    let cancelled = || stop.hit();
    let remote = git::Remote { url, reference, limit: FETCH, bytes: LIMITS.bytes, cancelled: &cancelled };
    let fetched = remote.fetch(&scratch).map_err(|e| e.to_string())?;
    archive::unpack_bytes(&fetched.tar, into, LIMITS)?;
    Ok(fetched.commit)
}

/// The bytes at an address.
fn download(setup: &Setup, url: &str, most: u64, stop: &Interrupt) -> Result<Vec<u8>, String> {
    if !tiller_skills::packs::is_download(url) {
        return Err(format!("{} is not an https:// address", shown(url)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("it cannot be fetched: {e}"))?;
    let http = Http::new(NetEnv::read(&|name| (setup.env)(name)));
    let fetch = async {
        let mut address = url.to_owned();
        let mut hops = 0;
        // Archives often lie on another host than the address names. No key goes with these requests.
        let mut answer = loop {
            let parsed = address.parse().map_err(|_| "the address is not valid".to_owned())?;
            let client = http.client(&parsed, CONNECT).await.map_err(|e| e.to_string())?;
            let answer = tokio::time::timeout(SILENCE, client.get(parsed.clone()).send()).await;
            let answer = answer.map_err(|_| "the server does not answer")?.map_err(|e| cause(&e))?;
            let to = answer.headers().get("location").and_then(|to| to.to_str().ok());
            let to = to.filter(|_| answer.status().is_redirection()).map(|to| parsed.join(to));
            let Some(to) = to else { break answer };
            let to = to.map_err(|_| "it redirects to an address that is not valid".to_owned())?.to_string();
            hops += 1;
            if hops > REDIRECTS
                || !tiller_skills::packs::is_download(&to)
                || address.starts_with("https") && !to.starts_with("https")
            {
                return Err(format!("it redirects to {}, which is not followed", shown(&to)));
            }
            address = to;
        };
        if !answer.status().is_success() {
            return Err(format!("the server answered with HTTP {}", answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        loop {
            let chunk = tokio::time::timeout(SILENCE, answer.chunk()).await;
            let Some(chunk) = chunk.map_err(|_| "the server fell silent")?.map_err(|e| cause(&e))? else {
                return Ok(bytes);
            };
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > most {
                return Err(format!("it is larger than {} MB", most >> 20));
            }
        }
    };
    let watch = async {
        while !stop.hit() {
            tokio::time::sleep(LOOK).await;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            done = tokio::time::timeout(FETCH, fetch) => done.unwrap_or_else(|_| Err("it took too long".into())),
            () = watch => Err("it was stopped".into()),
        }
    })
}

/// The innermost cause, which is the most specific.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("the transfer failed: {cause}")
}
