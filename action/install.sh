#!/usr/bin/env bash
# Installs one version of chorus for this job, if its sum is the given one. Without a version the chorus on the path is
# used.
set -euo pipefail
fail() { echo "::error::$1"; exit 1; }

if [ -z "$CHORUS_VERSION" ]; then
  command -v chorus >/dev/null || fail 'there is no chorus on the path: give version and sha256'
  exit 0
fi
[[ $CHORUS_VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail 'version is three numbers, such as 0.1.0'
[[ $CHORUS_SHA256 =~ ^[0-9a-f]{64}$ ]] || fail 'sha256 is the sum of the archive, 64 hexadecimal digits'
case "${RUNNER_OS:-} ${RUNNER_ARCH:-}" in
  'Linux X64') target=x86_64-unknown-linux-musl ;;
  'Linux ARM64') target=aarch64-unknown-linux-musl ;;
  'macOS X64') target=x86_64-apple-darwin ;;
  'macOS ARM64') target=aarch64-apple-darwin ;;
  *) fail "there is no chorus for ${RUNNER_OS:-} ${RUNNER_ARCH:-}" ;;
esac

into=$RUNNER_TEMP/chorus-$CHORUS_VERSION
archive=$into/chorus.tar.gz
mkdir -p "$into"
curl --fail --silent --show-error --location --proto '=https,http' --retry 3 --output "$archive" \
  "$CHORUS_RELEASES/v$CHORUS_VERSION/chorus-$CHORUS_VERSION-$target.tar.gz" || fail 'the archive could not be fetched'
sum=$( (sha256sum "$archive" 2>/dev/null || shasum -a 256 "$archive") | cut -d ' ' -f 1)
# Nothing of an archive with another sum is unpacked.
[ "$sum" = "$CHORUS_SHA256" ] || { rm -f "$archive"; fail "the archive has another sum: $sum"; }
tar xzf "$archive" -C "$into"
binary=$(find "$into" -type f -name chorus | head -n 1)
[ -n "$binary" ] || fail 'the archive has no chorus'
chmod 755 "$binary"
dirname "$binary" >>"$GITHUB_PATH"
