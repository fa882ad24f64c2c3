//! Variables in front of a command.

use crate::shell::{Part, SETTERS, is_quiet};

/// Variables that make other programs run something else.
pub(super) fn environment(part: &Part) -> Option<String> {
    let exported = part.args().iter().filter(|_| {
        matches!(part.base().as_str(), "export" | "declare" | "typeset" | "local" | "readonly" | "setenv")
    });
    let names = part
        .env
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(exported.filter_map(|w| w.text.split_once('=').map(|(n, _)| n.trim_end_matches('+'))));
    // `read PATH`, `printf -v PATH`, `declare -n x=PATH`: a builtin that sets the variable it is given.
    let set = part.args().iter().filter(|_| SETTERS.contains(&part.base().as_str()));
    let set = set.map(|w| w.text.rsplit_once('=').map_or(w.text.trim_start_matches("-v"), |(_, v)| v));
    names.chain(set).find(|n| steers(n)).map(|n| format!("it sets {n}, which changes what other programs do"))
}

/// True for a variable that changes what other programs do.
pub(crate) fn steers(name: &str) -> bool {
    if is_quiet(name) {
        return false;
    }
    const NAMES: &[&str] = &[
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "PROMPT_COMMAND",
        "PS0",
        "PS4",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "CDPATH",
        "GLOBIGNORE",
        "EXECIGNORE",
        "FIGNORE",
        "FPATH",
        "ZDOTDIR",
        "PAGER",
        "MANPAGER",
        "MANOPT",
        "LESS",
        "LESSOPEN",
        "LESSCLOSE",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "HOME",
        "XDG_CONFIG_HOME",
        "PERL5LIB",
        "PERL5OPT",
        "PERL5DB",
        "PERLLIB",
        "RUBYOPT",
        "RUBYLIB",
        "NODE_OPTIONS",
        "NODE_PATH",
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTDOC",
        "RUSTFLAGS",
        "RUSTUP_HOME",
        "CARGO_HOME",
        "CC",
        "CXX",
        "LD",
        "AR",
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "MAKE",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "MAVEN_OPTS",
        "CLASSPATH",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "RSYNC_RSH",
        "CVS_RSH",
        "TAR_OPTIONS",
        "GREP_OPTIONS",
        "RIPGREP_CONFIG_PATH",
        "FZF_DEFAULT_COMMAND",
        "CURL_HOME",
        "WGETRC",
        "OPENSSL_CONF",
        "OPENSSL_MODULES",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "HOSTALIASES",
        "RESOLV_HOST_CONF",
        "TMPDIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "SSL_CERT_FILE",
        "GOFLAGS",
        "GOROOT",
        "HISTFILE",
        "INPUTRC",
        "TERMINFO",
        "TERMCAP",
        "BASH_FUNC",
        "EMACSLOADPATH",
        "VIMINIT",
        "EXINIT",
        "VIMRUNTIME",
        "AWKPATH",
        "AWKLIBPATH",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "LUA_INIT",
        "LUA_PATH",
        "R_PROFILE",
        "JULIA_LOAD_PATH",
        "ANTHROPIC_BASE_URL",
        "OPENAI_BASE_URL",
        "DOCKER_HOST",
        "KUBECONFIG",
    ];
    const STARTS: &[&str] = &[
        "LD_",
        "DYLD_",
        "GIT_",
        "PYTHON",
        "TILLER_",
        "BASH_FUNC_",
        "npm_config_",
        "NPM_CONFIG_",
        "PIP_",
        "CARGO_TARGET_",
        "CARGO_BUILD_",
        "CARGO_REGISTR",
        "GCONV",
        "MALLOC_",
        "GLIBC_",
        "ASAN_",
        "LUA_INIT",
        "SSH_",
        "ANSIBLE_",
    ];
    NAMES.contains(&name) || STARTS.iter().any(|s| name.starts_with(s))
}
