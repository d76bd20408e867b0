#!/usr/bin/env python3
"""Executes every notebook of this folder with nbclient.

--check fails if a notebook raises, or prints something else than what is committed (pictures aren't compared: their bytes
depend on the fonts). --write stores the executed notebooks. The notebooks find verify by the variable VERIFY.
"""
import argparse
import os
import pathlib
import sys
import tempfile

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def printed(notebook):
    """What a reader sees of each code cell: printed text and the plain form of results, without pictures."""
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs
                     if "image/png" not in output.get("data", {})]
            cells.append("".join(texts))
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", required=True, help="the verify program")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    options = parser.parse_args()

    os.environ["VERIFY"] = os.path.abspath(options.verify)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what is committed was printed without a GPU
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    failed = False
    for path in sorted(pathlib.Path(__file__).parent.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        before = printed(notebook)
        with tempfile.TemporaryDirectory() as folder:
            try:
                NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
            except CellExecutionError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                failed = True
                continue
        if options.write:
            for cell in notebook.cells:
                cell.metadata.pop("execution", None)  # times of day, different in each run
            nbformat.write(notebook, path)
            print(f"{path.name}: written")
        elif printed(notebook) != before:
            failed = True
            for number, (old, new) in enumerate(zip(before, printed(notebook))):
                if old != new:
                    print(f"{path.name}, code cell {number + 1} printed\n{new}\nbut the committed notebook shows\n{old}")
            print("Run: cmake --build build/default --target notebooks_output")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
