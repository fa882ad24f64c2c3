//! Variables in front of a command.

use tiller_shell::{Part, SETTERS, changes_programs};

/// Variables that make other programs run something else.
pub(super) fn environment(part: &Part) -> Option<String> {
    let base = part.base();
    let exports = matches!(base.as_str(), "export" | "declare" | "typeset" | "local" | "readonly" | "setenv");
    let exported = part.args().iter().filter(|_| exports);
    // `IFS= read -r line`: it splits only what is read.
    let splits = matches!(base.as_str(), "read" | "mapfile" | "readarray");
    let names = part
        .env
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !(splits && *name == "IFS"))
        .chain(exported.filter_map(|w| w.text.split_once('=').map(|(n, _)| n.trim_end_matches('+'))));
    // `read PATH`, `printf -v PATH`, `declare -n x=PATH`: a builtin that sets the variable it is given.
    let sets = SETTERS.contains(&base.as_str());
    let set = part.args().iter().filter(|_| sets);
    let set = set.map(|w| w.text.rsplit_once('=').map_or(w.text.trim_start_matches("-v"), |(_, v)| v));
    names
        .chain(set)
        .find(|n| changes_programs(n))
        .map(|n| format!("it sets {n}, which changes what other programs do"))
}
