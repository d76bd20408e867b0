#!/usr/bin/env python3
"""Keeps what README.md and docs/*.md show equal to what the programs print and the data files hold.

A page marks such a place with a comment, and the fenced block or the table below it is generated:

    <!-- output: verify --case listing -->
    ```text
    ...
    ```

    <!-- table: measured/h200-naive-bits.json -->
    | what | value |
    ...

    <!-- tests: faults exceed the bound of an fp32 stage -->
    | fault | share |
    ...

    <!-- conformance: every instruction form computes what the H200 computes or is refused for a known reason -->
    | forms | measured on the H200 |
    ...

    <!-- end -->

`output` runs the verify program with those arguments, in a folder that holds a copy of docs/programs and nothing else, and
shows all that it prints, with the exit code if it is not 0. `table` shows the rows of a data file under docs/. `tests` runs
the test case of verify_test with that name and shows the tables that it prints, `conformance` one of conformance_test.
--check compares and fails with a difference;
--write replaces.
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

MARK = re.compile(r"^<!-- (?P<kind>output|table|tests|conformance): (?P<what>.+?) -->\n(?P<body>.*?)^<!-- end -->\n", re.M | re.S)


def output_block(arguments, verify, docs):
    program, *rest = shlex.split(arguments)
    if program != "verify":
        raise ValueError(f"'{arguments}': only the output of verify can be shown")
    # No GPU here is what almost every reader has: the output must not depend on the machine it was generated on.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "120", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        if (docs / "programs").is_dir():
            shutil.copytree(docs / "programs", pathlib.Path(folder, "docs", "programs"))
        run = subprocess.run([verify, *rest], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=600)
    code = f"(exit code {run.returncode})\n" if run.returncode else ""
    return f"```text\n{run.stdout.rstrip()}\n{code}```\n"


def table_block(path):
    data = json.loads(path.read_text())
    columns = data["columns"]
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in data["rows"]]
    return f"{data['machine']}, {data['date']}. Command: `{data['command']}`\n\n" + "\n".join(lines) + "\n"


def tests_block(name, program):
    run = subprocess.run([program, f"--test-case={name}"], text=True, stdout=subprocess.PIPE, timeout=600)
    rows = [line for line in run.stdout.splitlines() if line.startswith("|") or not line]
    if run.returncode or not any(rows):
        raise ValueError(f"the test case '{name}' fails or prints no table")
    return re.sub(r"\n{2,}", "\n\n", "\n".join(rows)).strip() + "\n"


def regenerate(text, programs, docs):
    generators = {"output": lambda what: output_block(what, programs["verify"], docs),
                  "table": lambda what: table_block(docs / what),
                  "tests": lambda what: tests_block(what, programs["verify_test"]),
                  "conformance": lambda what: tests_block(what, programs["conformance_test"])}

    def replace(match):
        what = match["what"]
        body = generators[match["kind"]](what)
        return f"<!-- {match['kind']}: {what} -->\n{body}<!-- end -->\n"

    opened = len(re.findall(r"^<!-- (?:output|table|tests|conformance): ", text, re.M))
    text, replaced = MARK.subn(replace, text)
    if replaced != opened:
        raise ValueError(f"{opened} places are marked, but {replaced} end with <!-- end -->")
    return text


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", required=True, help="the verify program")
    parser.add_argument("--verify-test", required=True, help="its test program")
    parser.add_argument("--conformance-test", required=True, help="the test program of the instruction forms")
    parser.add_argument("--root", required=True, type=pathlib.Path, help="the repository")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)

    programs = {"verify": os.path.abspath(options.verify), "verify_test": os.path.abspath(options.verify_test),
                "conformance_test": os.path.abspath(options.conformance_test)}
    docs = options.root / "docs"
    stale = 0
    for page in [options.root / "README.md", *sorted(docs.glob("*.md"))]:
        old = page.read_text()
        try:
            new = regenerate(old, programs, docs)
        except (ValueError, OSError, KeyError) as error:
            print(f"{page.relative_to(options.root)}: {error}", file=sys.stderr)
            return 2
        if old == new:
            continue
        stale += 1
        if options.write:
            page.write_text(new)
            print(f"{page.relative_to(options.root)}: rewritten")
        else:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True),
                                                       f"{page.name} (committed)", f"{page.name} (regenerated)"))
    if options.check and stale:
        print(f"{stale} page(s) show stale output. Run: cmake --build build/default --target docs_output")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
