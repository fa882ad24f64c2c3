#!/usr/bin/env python3
"""Looks for secrets in the files of a git repository, and with --history in every line that a commit added.

    scan.py REPOSITORY [--history] [--most N]

Prints place, kind and the masked beginning of each finding. Values are never printed.
Exit code: 0 nothing found, 1 found something, 2 cannot scan.
"""
import argparse
import collections
import math
import re
import subprocess
import sys

FORMS = [
    ("private key", re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")),
    ("AWS key id", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b")),
    ("GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("Slack token", re.compile(r"\bxox[abposr]-[A-Za-z0-9-]{20,}")),
    ("Stripe key", re.compile(r"\b[rs]k_live_[A-Za-z0-9]{20,}")),
    ("Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}")),
    ("model provider's key", re.compile(r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}")),
    ("signed token", re.compile(r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{15,}")),
    ("password in a URL", re.compile(r"\b[a-z][a-z0-9+]{1,15}://[^\s:/@\"'<>$]{1,60}:([^\s:/@\"'<>${}]{6,100})@[\w.-]+")),
]
ASSIGNED = re.compile(
    r"(?i)(?:api|access|secret|auth|private|client|encryption|signing)?[_-]?(?:key|token|secret|passw(?:or)?d|credential)s?"
    r"[\"']?\s*(?:=>|[:=])\s*[\"']?([A-Za-z0-9+/_.~-]{16,200}={0,2})"
)
BY_NAME = re.compile(
    r"(?i)(^|/)(\.env(\.(local|prod|production|staging))?|id_(rsa|dsa|ecdsa|ed25519)|.*\.(pem|p12|pfx|jks|keystore|kdbx)|"
    r"\.netrc|\.pgpass|\.htpasswd|credentials(\.json)?|service[-_]account.*\.json)$"
)
HARMLESS = re.compile(r"(?i)example|sample|dummy|changeme|placeholder|your[_-]|xxxx|<.*>|\*{4}|test[_-]?(key|token|secret)|0{8}|1234567890")


def entropy(text):
    counts = collections.Counter(text)
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())


def findings(line):
    """Kinds and values of the secrets in a line."""
    found = []
    for kind, form in FORMS:
        for match in form.finditer(line):
            found.append((kind, match.group(match.lastindex or 0)))
    for match in ASSIGNED.finditer(line):
        value = match.group(1)
        mixed = re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
        # Names, paths and calls are letters with separators; random values are not.
        if mixed and entropy(value) > 3.5 and "/" not in value[:2] and not any(value in v for _, v in found):
            found.append(("assigned value", value))
    return [(k, v) for k, v in found if not HARMLESS.search(v)]


def masked(value):
    return (value[:4] if len(value) >= 16 else "") + "..." + f" ({len(value)} characters)"


def git(repository, *arguments):
    # Neither the repository's programs nor its attributes shall run.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-C", repository, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def fields(repository, *arguments):
    process = git(repository, *arguments)
    out = process.communicate()[0].decode(errors="replace").split("\0")
    if process.returncode != 0:
        print(f"{repository} is not a git repository, or cannot be read", file=sys.stderr)
        sys.exit(2)
    return [f for f in out if f]


def in_files(repository):
    top = fields(repository, "rev-parse", "--show-toplevel")[0].strip()
    for name in fields(repository, "ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard", ":/"):
        if BY_NAME.search(name):
            yield name, "secret by its name", ""
        try:
            with open(f"{top}/{name}", "rb") as file:
                data = file.read(2_000_000)
        except OSError:
            continue
        if b"\0" in data[:8000]:
            continue
        for at, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            for kind, value in findings(line[:5000]):
                yield f"{name}:{at}", kind, value


def in_history(repository):
    fields(repository, "rev-parse", "--git-dir")
    arguments = ["log", "--all", "--reflog", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--format=commit %h %as"]
    # A merge is compared with each parent: what it alone added is seen. "--first-parent" would leave out merged branches.
    process = git(repository, *arguments, "-m")
    commit = name = ""
    in_hunk = False
    for raw in process.stdout:
        line = raw.decode(errors="replace").rstrip("\n")
        if line.startswith("commit ") and not in_hunk:
            commit = line[7:]
        elif line.startswith("diff --git "):
            in_hunk = False
        elif line.startswith("+++ ") and not in_hunk:
            name = line[4:].removeprefix("b/").rstrip("\t")
            if BY_NAME.search(name):
                yield f"{commit} {name}", "secret by its name", ""
        elif line.startswith("@@"):
            in_hunk = True
        elif in_hunk and line.startswith("+"):
            for kind, value in findings(line[1:5001]):
                yield f"{commit} {name}", kind, value
        elif in_hunk and not line.startswith(("-", "\\")):
            in_hunk = False
            commit = line[7:] if line.startswith("commit ") else commit
    process.wait()


def main():
    parser = argparse.ArgumentParser(description="Looks for secrets in a git repository.")
    parser.add_argument("repository")
    parser.add_argument("--history", action="store_true", help="every line that a commit added, also of removed branches")
    parser.add_argument("--most", type=int, default=200)
    args = parser.parse_args()
    seen = {}
    for place, kind, value in (in_history if args.history else in_files)(args.repository):
        # One secret once, with the number of places.
        key = (kind, value or place)
        seen.setdefault(key, [place, 0])[1] += 1
        if args.history:
            seen[key][0] = place  # the log is newest first: the last one is the oldest
    for (kind, value), (place, count) in list(seen.items())[: args.most]:
        more = f", {count} places" if count > 1 else ""
        place = "".join(c if c.isprintable() else "?" for c in place)
        print(f"{place}  {kind}  {masked(value) if value else ''}{more}")
    if len(seen) > args.most:
        print(f"and {len(seen) - args.most} more")
    sys.exit(1 if seen else 0)


if __name__ == "__main__":
    main()
