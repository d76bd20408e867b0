"""regenerate.py must notice a stale page, and leave a fresh one alone. A stand-in takes the place of verify."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import regenerate  # noqa: E402  (it stands beside this file)

PAGE = """# Title
<!-- output: verify --case x -->
```text
old
```
<!-- end -->
Text stays.
<!-- table: data.json -->
<!-- end -->
<!-- tests: faults -->
<!-- end -->
<!-- conformance: forms -->
<!-- end -->
"""


class Regenerate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "docs").mkdir()
        self.verify = self.root / "verify"
        self.verify.write_text('#!/bin/sh\necho "ran $*"\nexit 3\n')
        self.verify.chmod(0o755)
        self.verify_test = self.root / "verify_test"
        self.verify_test.write_text('#!/bin/sh\nprintf "noise\\n\\n| %s | 7 |\\n" "$1"\n')
        self.verify_test.chmod(0o755)
        self.conformance_test = self.root / "conformance_test"
        self.conformance_test.write_text('#!/bin/sh\nprintf "| %s | 8 |\n" "$1"\n')
        self.conformance_test.chmod(0o755)
        self.page = self.root / "docs" / "page.md"
        self.page.write_text(PAGE)
        (self.root / "README.md").write_text("nothing marked\n")
        (self.root / "docs" / "data.json").write_text(json.dumps(
            {"machine": "M", "date": "D", "command": "c", "columns": ["a", "b"], "rows": [[1, 2]]}))

    def run_mode(self, mode):
        return regenerate.main(["--verify", str(self.verify), "--verify-test", str(self.verify_test),
                                "--conformance-test", str(self.conformance_test), "--root", str(self.root), mode])

    def test_stale_page_fails_the_check_and_is_left_alone(self):
        self.assertEqual(self.run_mode("--check"), 1)
        self.assertEqual(self.page.read_text(), PAGE)

    def test_written_page_shows_output_exit_code_and_table_and_passes(self):
        self.assertEqual(self.run_mode("--write"), 0)
        text = self.page.read_text()
        self.assertIn("```text\nran --case x\n(exit code 3)\n```", text)
        self.assertIn("M, D. Command: `c`\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n<!-- end -->", text)
        self.assertIn("<!-- tests: faults -->\n| --test-case=faults | 7 |\n<!-- end -->", text)
        self.assertIn("<!-- conformance: forms -->\n| --test-case=forms | 8 |\n<!-- end -->", text)
        self.assertIn("Text stays.", text)
        self.assertEqual(self.run_mode("--check"), 0)

    def test_programs_are_found_below_docs(self):
        (self.root / "docs" / "programs").mkdir()
        (self.root / "docs" / "programs" / "k.ptx").write_text("a kernel\n")
        self.verify.write_text('#!/bin/sh\ncat "$2"\n')
        self.page.write_text("<!-- output: verify ptx docs/programs/k.ptx -->\n<!-- end -->\n")
        self.assertEqual(self.run_mode("--write"), 0)
        self.assertIn("```text\na kernel\n```", self.page.read_text())

    def test_unclosed_place_is_an_error(self):
        self.page.write_text("<!-- output: verify -->\nno end\n")
        self.assertEqual(self.run_mode("--check"), 2)

    def test_only_verify_is_run(self):
        self.page.write_text("<!-- output: rm -rf x -->\n<!-- end -->\n")
        self.assertEqual(self.run_mode("--check"), 2)


if __name__ == "__main__":
    unittest.main()
