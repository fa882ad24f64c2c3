#!/usr/bin/env python3
"""Rates of log lines by minute and by template, and which templates changed in a window.

    rates.py FILE... [--from TIME] [--to TIME] [--top N]

TIME is ISO (2026-03-02T14:00, UTC unless it has an offset). Without --from, the window is the five minutes around the busiest minute of
error lines. Files may be .gz. Lines without a timestamp belong to the line before them.
"""
import argparse
import collections
import datetime as dt
import gzip
import re
import sys

ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d+)?\s?(Z|[+-]\d\d:?\d\d)?")
SYSLOG = re.compile(r"^(?:<\d+>)?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)")
UNIX = re.compile(r"(?<!\d)(1[5-9]\d{8})(?:\d{3})?(?:\.\d+)?(?!\d)")
MONTHS = {m: n for n, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
ERROR = re.compile(
    r"\b(error|fatal|panic|exception|critical|severe|fail(ed|ure)?|timed? ?out|refused)\b"
    r"|(status(_code)?[\"=: ]+|HTTP/[\d.]+\"? )5\d\d\b",
    re.I,
)
PARTS = [
    (re.compile(r"\"[^\"]*\"|'[^']*'"), "<text>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", re.I), "<uuid>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b"), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b", re.I), "<hash>"),
    (re.compile(r"\d+(\.\d+)?"), "<n>"),
]


def moment(line, now):
    """The time of a line in UTC, and the line without it; None: it has no time."""
    if found := ISO.search(line):
        date, clock, zone = found.groups()
        zone = "+00:00" if zone in (None, "Z") else zone
        zone = zone if ":" in zone else zone[:3] + ":" + zone[3:]
        try:
            when = dt.datetime.fromisoformat(f"{date}T{clock}{zone}").astimezone(dt.timezone.utc)
        except ValueError:
            return None
    elif found := SYSLOG.search(line):
        month, day, clock = found.groups()
        # Syslog writes no year. A time in the future, or on a day that this year does not have, is of last year.
        for of in (now.year, now.year - 1):
            try:
                when = dt.datetime.fromisoformat(f"{of}-{MONTHS[month]:02}-{int(day):02}T{clock}+00:00")
            except (KeyError, ValueError):
                continue
            if when <= now + dt.timedelta(days=1):
                break
        else:
            return None
    elif found := UNIX.search(line[:64]):
        when = dt.datetime.fromtimestamp(int(found.group(1)), dt.timezone.utc)
    else:
        return None
    return when, line[: found.start()] + line[found.end() :]


def template(text):
    for pattern, word in PARTS:
        text = pattern.sub(word, text)
    return " ".join(text.split())[:160]


def lines(paths):
    for path in paths:
        opener = gzip.open if path.endswith(".gz") else open
        with opener(path, "rt", errors="replace") as file:
            yield from file


def stamp(text):
    when = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when if when.tzinfo else when.replace(tzinfo=dt.timezone.utc)


def main():
    parser = argparse.ArgumentParser(description="Rates of log lines by minute and by template.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--from", dest="since", type=stamp)
    parser.add_argument("--to", dest="until", type=stamp)
    parser.add_argument("--top", type=int, default=15)
    args = parser.parse_args()
    if args.until and not args.since:
        parser.error("--to needs --from")
    now = dt.datetime.now(dt.timezone.utc)
    events, skipped = [], 0
    for line in lines(args.files):
        found = moment(line, now)
        if found is None:
            skipped += 1
            continue
        when, rest = found
        events.append((when.replace(second=0), template(rest), bool(ERROR.search(rest))))
    if not events:
        sys.exit("no line has a timestamp that is known (ISO, syslog, Unix)")
    minutes = collections.Counter(e[0] for e in events)
    errors = collections.Counter(e[0] for e in events if e[2])
    step = dt.timedelta(minutes=1)
    if args.since:
        low = args.since
        high = args.until or low + 5 * step
    else:
        peak = max(errors or minutes, key=lambda m: ((errors or minutes)[m], -m.timestamp()))
        low, high = peak - 2 * step, peak + 3 * step
    print(f"{len(events)} lines, {min(minutes):%Y-%m-%d %H:%M} to {max(minutes):%Y-%m-%d %H:%M} UTC; {skipped} without a time")
    print(f"window {low:%Y-%m-%d %H:%M} to {high:%H:%M}\n\nminute              lines  errors")
    most = max(minutes.values())
    for minute in sorted(m for m in minutes if low - 5 * step <= m <= high + 5 * step):
        mark = "*" if low <= minute < high else " "
        bar = "#" * max(1, round(minutes[minute] * 40 / most))
        print(f"{minute:%Y-%m-%d %H:%M} {mark} {minutes[minute]:6}  {errors[minute]:6}  {bar}")
    inside, outside, first = collections.Counter(), collections.Counter(), {}
    for minute, text, _ in events:
        (inside if low <= minute < high else outside)[text] += 1
        first[text] = min(first.get(text, minute), minute)
    within = max(1, sum(1 for m in minutes if low <= m < high))
    without = max(1, len(minutes) - within)

    def change(text):
        return (inside[text] / within + 0.1) / (outside[text] / without + 0.1)

    print("\n  inside  outside  first seen        template")
    new = sorted((t for t in inside if not outside[t]), key=lambda t: (first[t], -inside[t]))
    more = sorted((t for t in inside if outside[t]), key=change, reverse=True)
    for text in (new + more)[: args.top]:
        mark = "new " if not outside[text] else f"x{change(text):.0f}"
        print(f"{inside[text]:8} {outside[text]:8}  {first[text]:%Y-%m-%d %H:%M}  {mark:5} {text}")
    gone = [t for t in outside if not inside[t] and outside[t] / without >= 1]
    for text in sorted(gone, key=lambda t: -outside[t])[:5]:
        print(f"{0:8} {outside[text]:8}  {first[text]:%Y-%m-%d %H:%M}  gone  {text}")


if __name__ == "__main__":
    main()
