//! Dangerous uses of programs, by name.

use super::args::{Args, broad as spelled_broad};
use super::device;
use super::git::git;
use super::location::Location;
use super::moves::moves;
use super::secrets::reads_secret;
use tiller_shell::{Part, Word};

/// Programs that change the system and only show it here: `mount`, `sysctl -a`, `gpg --version`.
fn only_shows(base: &str, args: &[Word]) -> bool {
    let is = |w: &Word, all: &[&str]| w.plain() && all.contains(&w.text.as_str());
    match args {
        [] => matches!(base, "mount" | "hostnamectl" | "timedatectl"),
        [word] if base == "sysctl" => is(word, &["-a"]),
        [word] if base == "gpg" => is(word, &["--version"]),
        [word] if base == "hostnamectl" => is(word, &["status"]),
        _ => false,
    }
}

/// Why this command is dangerous.
pub(super) fn command(part: &Part, location: Location<'_>) -> Option<String> {
    let base = part.base();
    let a = Args { words: part.args() };
    let yes = |cond: bool, why: &str| cond.then(|| why.to_owned());
    let broad = |w: &Word| {
        let inside = location.inside(w) && !w.tilde && w.text.starts_with('/');
        !inside && spelled_broad(w) || location.broad(w)
    };
    let to_device =
        |w: &Word| device(&w.text) || location.paths(w).iter().any(|p| p.to_str().is_some_and(device));
    if only_shows(&base, part.args()) {
        return None;
    }
    match base.as_str() {
        "rm" | "grm" | "srm" => {
            let recursive = a.has('r', "recursive") || a.has('R', "");
            yes(recursive && a.operands().any(&broad), "it deletes a whole directory tree")
                .or_else(|| {
                    yes(
                        recursive && a.has('f', "force") && a.operands().any(|w| w.dynamic),
                        "it deletes a directory tree that is known only at run time",
                    )
                })
                .or_else(|| yes(a.any(|t| t == "--no-preserve-root"), "it deletes a whole directory tree"))
        }
        "find" | "gfind" => yes(a.text("-delete"), "find deletes what it finds").or_else(|| {
            yes(a.any(|t| matches!(t, "-fprint" | "-fprintf" | "-fprint0" | "-fls")), "find writes a file")
        }),
        "unlink" | "shred" | "wipe" | "srm2" => yes(base != "unlink", "it destroys files irrecoverably"),
        "dd" => {
            let of = |w: &Word| w.text.strip_prefix("of=").map(|t| Word { text: t.to_owned(), ..w.clone() });
            yes(a.words.iter().filter_map(of).any(|w| to_device(&w)), "it writes to a device")
        }
        "mkfs" | "mke2fs" | "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted" | "wipefs"
        | "mkswap" | "blkdiscard" | "hdparm" | "cryptsetup" | "lvremove" | "vgremove" | "pvremove"
        | "zpool" | "zfs" | "mdadm" | "losetup" | "diskutil" | "badblocks" | "swapoff" | "tune2fs" => {
            Some("it changes disks or partitions".into())
        }
        b if b.starts_with("mkfs.") => Some("it changes disks or partitions".into()),
        "chmod" | "chown" | "chgrp" | "setfacl" => {
            yes(a.has('R', "recursive"), "it changes the permissions of a whole directory tree")
                .or_else(|| {
                    yes(
                        base == "chmod" && a.any(|t| t.contains("+s") || t.contains("u=s") || set_id(t)),
                        "it makes a program run with the rights of its owner",
                    )
                })
                .or_else(|| {
                    yes(
                        base == "chmod"
                            && a.any(|t| matches!(t, "777" | "0777" | "a+rwx" | "666" | "a+w" | "o+w")),
                        "it makes the file writable for everyone",
                    )
                })
        }
        "sudo" | "doas" | "su" | "pkexec" | "runuser" | "sudoedit" | "chroot" | "gosu" | "su-exec"
        | "setpriv" | "capsh" | "newgrp" => Some(format!("{base} runs it as another user")),
        "kill" | "pkill" | "killall" | "killall5" | "xkill" | "skill" => yes(
            base == "killall5"
                || a.any(|t| t == "-1" && a.words.len() > 1)
                    && a.words.last().is_some_and(|w| w.text == "-1")
                || a.operands().any(|w| matches!(w.text.as_str(), "1" | "0"))
                || a.words
                    .iter()
                    .filter(|w| w.text.starts_with('-') && w.text[1..].parse::<i64>().is_ok())
                    .count()
                    > 1,
            "it ends many processes",
        )
        .or_else(|| yes(matches!(base.as_str(), "pkill" | "killall" | "skill"), "it ends processes by name")),
        "shutdown" | "reboot" | "halt" | "poweroff" | "init" | "telinit" | "kexec" => {
            Some("it shuts down or restarts the machine".into())
        }
        "systemctl" | "service" | "launchctl" | "rc-service" | "loginctl" | "update-rc.d" => yes(
            !a.any(|t| {
                matches!(
                    t,
                    "status"
                        | "show"
                        | "list-units"
                        | "is-active"
                        | "is-enabled"
                        | "list-unit-files"
                        | "cat"
                        | "list"
                )
            }),
            "it changes services",
        ),
        "crontab" | "at" | "batch" | "anacron" => yes(!a.text("-l"), "it schedules commands"),
        "insmod"
        | "modprobe"
        | "rmmod"
        | "sysctl"
        | "mount"
        | "umount"
        | "swapon"
        | "iptables"
        | "ip6tables"
        | "nft"
        | "ufw"
        | "firewall-cmd"
        | "setenforce"
        | "visudo"
        | "vipw"
        | "passwd"
        | "chpasswd"
        | "useradd"
        | "userdel"
        | "usermod"
        | "groupadd"
        | "adduser"
        | "deluser"
        | "chsh"
        | "ldconfig"
        | "update-alternatives"
        | "dpkg-reconfigure"
        | "hostnamectl"
        | "timedatectl"
        | "chattr"
        | "nsenter"
        | "unshare"
        | "ptrace"
        | "gcore"
        | "setcap"
        | "mknod"
        | "csrutil"
        | "spctl"
        | "defaults"
        | "dscl" => Some("it changes the system".into()),
        "git" => git(&a, location),
        "gh" | "glab" | "hub" => yes(
            a.any(|t| {
                matches!(
                    t,
                    "delete"
                        | "merge"
                        | "close"
                        | "release"
                        | "secret"
                        | "create"
                        | "edit"
                        | "api"
                        | "auth"
                        | "variable"
                        | "ssh-key"
                        | "gpg-key"
                        | "run"
                        | "workflow"
                        | "transfer"
                        | "archive"
                        | "rename"
                        | "comment"
                        | "review"
                        | "upload"
                )
            }),
            "it changes something on a server",
        ),
        "npm" | "pnpm" | "yarn" | "bun" => yes(
            a.any(|t| {
                matches!(
                    t,
                    "publish"
                        | "unpublish"
                        | "deprecate"
                        | "login"
                        | "adduser"
                        | "token"
                        | "owner"
                        | "access"
                        | "dist-tag"
                )
            }),
            "it publishes a package, or changes an account",
        ),
        "cargo" => yes(
            a.any(|t| matches!(t, "publish" | "yank" | "login" | "logout" | "owner")),
            "it publishes a package, or changes an account",
        ),
        "twine" | "gem" | "poetry" | "hatch" | "flit" | "uv" | "mvn" | "gradle" | "gradlew" | "sbt"
        | "dotnet" | "nuget" | "vsce" | "ovsx" | "hex" | "mix" | "cabal" | "stack" | "pod" | "flutter"
        | "dart" | "helm" | "lerna" | "changeset" | "semantic-release" | "goreleaser" => yes(
            a.any(|t| {
                matches!(
                    t,
                    "publish" | "push" | "upload" | "deploy" | "yank" | "release" | "hex.publish" | "trunk"
                ) || (base == "helm"
                    && matches!(t, "uninstall" | "delete" | "upgrade" | "rollback" | "install"))
            }),
            "it publishes a package, or changes something on a server",
        ),
        "mysqladmin" => yes(a.any(|t| matches!(t, "drop" | "shutdown" | "kill")), "it deletes data"),
        "docker" | "podman" | "nerdctl" => container(&a),
        "kubectl" | "oc" | "terraform" | "tofu" | "pulumi" | "ansible" | "ansible-playbook" | "aws"
        | "gcloud" | "az" | "doctl" | "flyctl" | "fly" | "heroku" | "vercel" | "netlify" | "wrangler"
        | "firebase" | "supabase" | "eksctl" | "cdk" | "serverless" | "sls" => yes(
            a.any(|t| {
                matches!(
                    t,
                    "apply"
                        | "delete"
                        | "destroy"
                        | "create"
                        | "deploy"
                        | "exec"
                        | "rm"
                        | "rb"
                        | "mv"
                        | "cp"
                        | "sync"
                        | "put"
                        | "patch"
                        | "replace"
                        | "scale"
                        | "drain"
                        | "edit"
                        | "up"
                        | "import"
                        | "remove"
                        | "publish"
                        | "rollout"
                        | "login"
                        | "set"
                        | "update"
                        | "run"
                        | "push"
                        | "terminate-instances"
                        | "--prod"
                        | "print-access-token"
                        | "print-identity-token"
                        | "get-access-token"
                        | "get-secret-value"
                ) || t.starts_with("put-")
                    || t.starts_with("upload")
                    || t.starts_with("delete-")
                    || t.contains(":destroy")
                    || t.contains(":delete")
                    || t.contains("secret_access_key")
            }) || base.starts_with("ansible"),
            "it changes something on a server",
        ),
        "history" | "fc" => yes(base == "history" && !a.words.is_empty(), "it changes the shell's history"),
        "ssh-keygen" | "ssh-add" | "gpg" | "security" | "secret-tool" | "pass" | "keyctl"
        | "kwallet-query" | "ssh-copy-id" | "op" | "vault" | "bw" => {
            Some("it handles keys or passwords".into())
        }
        "nc" | "ncat" | "netcat" | "socat" | "telnet" => yes(
            a.any(|t| {
                matches!(
                    t,
                    "-e" | "-c" | "-l" | "-lp" | "-lvp" | "-lvnp" | "--exec" | "--sh-exec" | "--listen"
                ) || t.to_lowercase().contains("exec:")
                    || t.to_lowercase().contains("system:")
            }),
            "it opens a shell to the network",
        ),
        "tee" | "cp" | "mv" | "install" | "ln" | "truncate" => {
            yes(a.operands().any(to_device), "it writes to a device")
        }
        "awk" | "gawk" | "mawk" | "nawk" => yes(
            a.any(|t| {
                t.contains("system(")
                    || t.contains("system (")
                    || t.contains("| \"")
                    || t.contains("|\"")
                    || t.contains("|&")
                    || t.contains("getline")
                    || t.contains("/inet")
            }),
            "awk runs another program, or reaches the network",
        ),
        "mysql" | "psql" | "sqlite3" | "mongo" | "mongosh" | "redis-cli" | "mariadb" => yes(
            a.words.iter().chain(&part.stdin).any(|w| {
                let t = w.text.to_lowercase();
                [
                    "drop ",
                    "truncate ",
                    "delete from",
                    "flushall",
                    "flushdb",
                    "dropdatabase",
                    ".shell",
                    ".system",
                    "\\!",
                ]
                .iter()
                .any(|k| t.contains(k))
            }),
            "it deletes data",
        ),
        "dropdb" | "dropuser" => Some("it deletes data".into()),
        "eval" => None,
        "yes" => yes(part.redirects.iter().any(tiller_shell::Redirect::writes), "it fills the disk"),
        "xmrig" | "minerd" => Some("it mines cryptocurrency".into()),
        _ => None,
    }
    .or_else(|| moves(part, location))
    .or_else(|| reads_secret(part, location))
}

fn set_id(mode: &str) -> bool {
    mode.len() == 4 && mode.chars().all(|c| c.is_digit(8)) && mode.starts_with(['2', '4', '6', '7'])
}

/// `/etc:/host`: a folder of the machine handed into a container.
fn system_folder(volume: &str) -> bool {
    let Some((from, _)) = volume.split_once(':').filter(|(from, _)| from.starts_with('/')) else {
        return false;
    };
    let top = from.trim_matches('/').split('/').next().unwrap_or_default();
    matches!(
        top,
        "" | "etc"
            | "usr"
            | "bin"
            | "sbin"
            | "lib"
            | "lib64"
            | "boot"
            | "root"
            | "proc"
            | "sys"
            | "dev"
            | "run"
    ) || matches!(from.trim_end_matches('/'), "/var" | "/var/run" | "/home" | "/opt")
}

fn container(a: &Args<'_>) -> Option<String> {
    let wide = a.any(|t| {
        t == "--privileged"
            || t.starts_with("--privileged=")
            || t.starts_with("--pid=host")
            || t.starts_with("--net=host")
            || t.starts_with("--network=host")
            || t.starts_with("--ipc=host")
            || t.starts_with("--uts=host")
            || t.starts_with("--userns=host")
            || t.starts_with("--cap-add")
            || t.starts_with("--device")
            || t.starts_with("--security-opt")
            || t.contains("docker.sock")
            || t.starts_with("/:")
            || t.starts_with("-v/:")
            || system_folder(t.trim_start_matches("--volume=").trim_start_matches("-v"))
            || t.contains("src=/,")
            || t.contains("source=/,")
    });
    if wide {
        return Some("the container can access the whole machine".into());
    }
    let gone = a.any(|t| matches!(t, "prune" | "rm" | "rmi" | "push" | "login" | "kill" | "down"));
    gone.then(|| "it deletes or publishes containers, images or data".into())
}
