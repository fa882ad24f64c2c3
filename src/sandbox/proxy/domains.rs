//! Which hosts may be reached: names, compared label by label in their ASCII form.

use tiller_tool::proxy::host_name as host;

/// The list of domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    all: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// Without the leading `*.`.
    name: String,
    /// It stands for all names below, and not for the name itself.
    below: bool,
}

impl Domains {
    /// From the settings: `crates.io`, `*.crates.io`. What is no domain allows nothing.
    pub fn new<T: AsRef<str>>(list: &[T]) -> Self {
        let pattern = |text: &T| {
            let text = text.as_ref().trim();
            let (below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
            let name = host(&idna::domain_to_ascii(name).ok()?)?;
            // `*.com` is a person's choice; a name alone is a host of the local network.
            (below || name.contains('.')).then_some(Pattern { name, below })
        };
        Self { all: list.iter().filter_map(pattern).collect() }
    }

    /// It allows nothing.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a host in the form that [`host`] returns may be reached.
    pub(crate) fn allow(&self, host: &str) -> bool {
        self.all.iter().any(|pattern| match host.strip_suffix(&pattern.name) {
            Some("") => !pattern.below,
            Some(rest) => pattern.below && rest.ends_with('.'),
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_labels() {
        let domains =
            Domains::new(&["Crates.io", "*.example.com", "bücher.example", "single", "127.0.0.1", "*", ""]);
        let allowed = |text: &str| host(text).is_some_and(|h| domains.allow(&h));
        for yes in [
            "crates.io",
            "CRATES.IO",
            "crates.io.",
            "a.example.com",
            "a.b.EXAMPLE.com.",
            "xn--bcher-kva.example",
        ] {
            assert!(allowed(yes), "{yes}");
        }
        for no in [
            "static.crates.io",
            "example.com",
            "notexample.com",
            "example.com.evil.org",
            "crates.io.evil.org",
            "evilcrates.io",
            "crates.io..",
            ".crates.io",
            "crates.io:443",
            "crates.io\0.evil.org",
            "crates.io/",
            "crates%2eio",
            "bücher.example",
            "single",
            "127.0.0.1",
            "",
            ".",
        ] {
            assert!(!allowed(no), "{no}");
        }
        assert!(Domains::new(&["*", "single", "127.0.0.1", "[::1]", "a b.com"]).is_empty());
        assert!(Domains::new::<&str>(&[]).is_empty() && !Domains::default().allow("crates.io"));
    }

    #[test]
    fn addresses_are_no_names() {
        for text in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7F.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "1.2.3.0x",
            "[::1]",
            "::1",
            "fe80::1%eth0",
        ] {
            assert_eq!(host(text), None, "{text}");
        }
        assert_eq!(host("1.2.3.4.example").as_deref(), Some("1.2.3.4.example"));
    }
}
