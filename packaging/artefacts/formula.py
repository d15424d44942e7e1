"""The Homebrew formula, filled in with the addresses and sums of the tarballs."""

from __future__ import annotations

import hashlib

from .release import SUMMARY, Release, Target


def write_formula(release: Release, tarballs: dict[Target, tuple[str, bytes]]) -> tuple[str, bytes]:
    text = release.read_file("packaging/chorus.rb.in").decode()
    fields = {"VERSION": release.version, "SUMMARY": SUMMARY, "REPOSITORY": release.repository}
    fields["SYSTEMS"] = "\n\n".join(
        describe_system(release, system, architectures)
        for system in ("macos", "linux")
        if (architectures := [found for found in tarballs.items() if found[0].brew_system.startswith(system)])
    )
    for name, value in fields.items():
        text = text.replace(f"@{name}@", value)
    return "chorus.rb", text.encode()


def describe_system(release, system, architectures) -> str:
    lines = [f"  on_{system} do"]
    for target, (name, content) in architectures:
        lines += [
            f"    on_{target.brew_system.partition('_')[2]} do",
            f'      url "{release.repository}/releases/download/v{release.version}/{name}"',
            f'      sha256 "{hashlib.sha256(content).hexdigest()}"',
            "    end",
        ]
    return "\n".join([*lines, "  end"])
