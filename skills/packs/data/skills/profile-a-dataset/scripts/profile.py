#!/usr/bin/env python3
"""Describes each column of a CSV, TSV or JSONL file, in one pass and little memory.

    profile.py FILE [--key COLUMN[,COLUMN...]] [--separator CHARACTER] [--top N]

Files may end in .gz. Distinct values are counted up to 20,000 for each column, and keys up to 5,000,000.
Exit code: 0 described, 1 the file cannot be read as a table, 2 wrong arguments.
"""
import argparse
import collections
import csv
import datetime as dt
import gzip
import hashlib
import itertools
import json
import re
import sys

KINDS_AT_MOST, KEYS_AT_MOST = 20_000, 5_000_000
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?", "unknown", "nil", "#n/a"}
SENTINELS = {"-1", "-99", "-999", "999", "9999", "99999", "1900-01-01", "1970-01-01", "9999-12-31"}
WHOLE = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I)
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")
BROKEN = re.compile("Ã[\x80-\xbf]|â€|\ufffd")


class Column:
    def __init__(self):
        self.filled = self.missing = self.spaces = self.zeros = self.broken = self.long_ids = 0
        self.kinds = collections.Counter()
        self.values = collections.Counter()
        self.full = False
        self.low = self.high = None
        self.words = collections.Counter()
        self.longest = 0

    def add(self, raw):
        text = raw.strip()
        if text.lower() in MISSING:
            self.missing += 1
            self.words[text] += 1
            return
        self.filled += 1
        self.spaces += raw != text
        self.broken += bool(BROKEN.search(text))
        self.longest = max(self.longest, len(text))
        kind, value = self.kind(text)
        self.kinds[kind] += 1
        self.zeros += kind == "whole" and len(text) > 1 and text[0] == "0"
        self.long_ids += kind == "whole" and len(text) > 15
        if value is not None:
            self.low = value if self.low is None else min(self.low, value)
            self.high = value if self.high is None else max(self.high, value)
        if text in self.values or not self.full:
            self.values[text] += 1
            self.full = len(self.values) >= KINDS_AT_MOST

    @staticmethod
    def kind(text):
        """The kind of a value, and what ranges are made of: a pair, so that numbers and dates are never compared."""
        if WHOLE.fullmatch(text) and len(text) < 300:
            return "whole", ("n", int(text))
        if NUMBER.fullmatch(text):
            return "number", ("n", float(text))
        if DATE.fullmatch(text):
            try:
                dt.date.fromisoformat(text[:10])
                return "date", ("d", text)
            except ValueError:
                return "impossible date", None
        if OTHER_DATE.fullmatch(text):
            return "ambiguous date", None
        if text.lower() in ("true", "false", "yes", "no"):
            return "truth", None
        return "text", None

    def suspicions(self, rows):
        out = []
        main, count = self.kinds.most_common(1)[0] if self.kinds else ("empty", 0)
        odd = [f"{n} {k}" for k, n in self.kinds.most_common()[1:] if {k, main} != {"whole", "number"}]
        if odd and count >= 0.5 * self.filled:
            out.append(f"not all are {main}: " + ", ".join(odd[:3]))
        if len(self.words) > 1:
            out.append("missing is written as " + ", ".join(repr(w) for w in sorted(self.words)))
        sentinels = [v for v in SENTINELS if self.values.get(v, 0) > max(2, 0.01 * rows)]
        if sentinels:
            out.append("perhaps a stand-in for missing: " + ", ".join(sorted(sentinels)))
        if self.spaces:
            out.append(f"{self.spaces} with blanks around them")
        if self.zeros:
            out.append(f"{self.zeros} with leading zeros: keep as text")
        if self.long_ids:
            out.append(f"{self.long_ids} with more than 15 digits: keep as text")
        if self.broken:
            out.append(f"{self.broken} with broken encoding")
        folded = collections.defaultdict(set)
        if not self.full and "text" in self.kinds:
            for value in self.values:
                folded[" ".join(value.casefold().split())].add(value)
            same = [sorted(v) for v in folded.values() if len(v) > 1]
            if same:
                out.append(f"{len(same)} values in several spellings, such as " + " = ".join(map(repr, same[0][:3])))
        return out


def rows_of(path, separator):
    """Pairs of a line number and a row: a dictionary, or a text that says what is wrong with the line."""
    opener = gzip.open if path.endswith(".gz") else open
    plain = path[:-3] if path.endswith(".gz") else path
    with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        if plain.endswith((".jsonl", ".ndjson")):
            for at, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError:
                    yield at, "not JSON"
                    continue
                if not isinstance(row, dict):
                    yield at, "not an object"
                    continue
                yield at, {k: "" if v is None else v if isinstance(v, str) else json.dumps(v) for k, v in row.items()}
            return
        head = file.readline()
        if not separator:
            separator = max(",;\t|", key=head.count)
        lines = csv.reader(itertools.chain([head], file), delimiter=separator)
        names = next(lines, None)
        if not names or not head.strip():
            sys.exit(f"{path} has no header")
        if len(set(names)) != len(names):
            sys.exit("two columns have the same name: " + ", ".join(n for n in set(names) if names.count(n) > 1))
        for row in lines:
            if not row:
                continue
            if len(row) != len(names):
                yield lines.line_num, f"{len(row)} fields instead of {len(names)}"
            else:
                yield lines.line_num, dict(zip(names, row))


def short(value):
    text = value[1] if isinstance(value, tuple) else value
    text = f"{text:g}" if isinstance(text, float) else str(text)
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= 24 else text[:21] + "..."


def main():
    parser = argparse.ArgumentParser(description="Describes each column of a table.")
    parser.add_argument("file")
    parser.add_argument("--key", help="columns that should identify a row, with commas between them")
    parser.add_argument("--separator")
    parser.add_argument("--top", type=int, default=4)
    args = parser.parse_args()
    csv.field_size_limit(10_000_000)
    key = args.key.split(",") if args.key else []
    columns, wrong, rows = {}, [], 0
    keys, doubled, empty_keys = set(), 0, 0
    try:
        for at, row in rows_of(args.file, args.separator):
            if isinstance(row, str):
                wrong.append((at, row))
                continue
            rows += 1
            for name, value in row.items():
                columns.setdefault(name, Column()).add(value)
            if key:
                unknown = [k for k in key if k not in row]
                if unknown and rows == 1:
                    sys.exit(f"there is no column {unknown[0]}; there are: {', '.join(row)}")
                values = [row.get(k, "") for k in key]
                empty_keys += any(v.strip().lower() in MISSING for v in values)
                digest = hashlib.blake2b("\0".join(values).encode(), digest_size=8).digest()
                if digest in keys:
                    doubled += 1
                elif len(keys) < KEYS_AT_MOST:
                    keys.add(digest)
    except (OSError, EOFError, csv.Error) as error:
        sys.exit(f"{args.file} cannot be read: {error}")
    print(f"{rows} rows, {len(columns)} columns; {len(wrong)} lines that do not fit")
    for at, why in wrong[:5]:
        print(f"  line {at}: {why}")
    if key:
        print(f"key {'+'.join(key)}: {doubled} rows repeat one, {empty_keys} have an empty part")
    for name, column in columns.items():
        kind = column.kinds.most_common(1)[0][0] if column.kinds else "empty"
        absent = rows - column.filled
        distinct = f"{len(column.values)}{'+' if column.full else ''}"
        span = f"  {short(column.low)} to {short(column.high)}" if column.low is not None else f"  up to {column.longest} characters"
        print(f"\n{short(name)}: {kind}; {column.filled} filled, {absent} missing, {distinct} distinct{span}")
        top = column.values.most_common(args.top)
        if top and top[0][1] > 1:
            print("  commonest: " + ", ".join(f"{short(v)} ({n})" for v, n in top))
        for line in column.suspicions(rows):
            print(f"  ! {line}")


if __name__ == "__main__":
    main()
