"""The workflows that release: valid, and without the holes that a linter for them knows (REL-01)."""

from __future__ import annotations

import re
import unittest

from support import PACKAGING, needs, run

WORKFLOWS = sorted((PACKAGING.parent / ".github/workflows").glob("*.yml"))


class Workflows(unittest.TestCase):
    def test_all_four_are_there(self) -> None:
        self.assertEqual([path.stem for path in WORKFLOWS], ["ci", "nightly", "publish", "release"])

    @needs("zizmor")
    def test_the_linter_for_security_finds_nothing(self) -> None:
        done = run("zizmor", "--offline", "--persona", "pedantic", "--strict-collection", *WORKFLOWS, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @needs("check-jsonschema")
    def test_they_fit_the_schema_of_workflows(self) -> None:
        run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)

    @needs("hadolint")
    def test_the_linter_of_dockerfiles_finds_nothing(self) -> None:
        run("hadolint", PACKAGING.parent / "deploy/Dockerfile")

    def test_actions_are_pinned_by_commit(self) -> None:
        used = [line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
        self.assertGreater(len(used), 5)
        for line in used:
            self.assertRegex(line, r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")

    def test_releases_are_built_with_the_version_of_rust_that_the_crates_name(self) -> None:
        manifest = (PACKAGING.parent / "Cargo.toml").read_text()
        named = re.search(r'^rust-version = "([\d.]+)"$', manifest, re.MULTILINE)
        pinned = re.findall(r"rustup default ([\d.]+)$", self.read_workflow("release"), re.MULTILINE)
        assert named is not None
        self.assertEqual([version.rpartition(".")[0] for version in pinned], [named[1]])

    def read_workflow(self, name: str) -> str:
        return next(path for path in WORKFLOWS if path.stem == name).read_text()

    def test_build_jobs_have_no_secrets(self) -> None:
        text = self.read_workflow("release")
        jobs = re.split(r"\n  (?=\w+:\n    name:)", text)
        with_secrets = [job.partition(":")[0] for job in jobs if "secrets." in job]
        self.assertEqual(with_secrets, ["draft"])


if __name__ == "__main__":
    unittest.main()
