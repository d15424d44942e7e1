#!/bin/sh
# Installs chorus from its releases: curl -fsSL https://github.com/OWNER/chorus/releases/latest/download/install.sh | sh
#
#   --version V     another version than the newest
#   --uninstall     remove the program; keys and data stay
#
# CHORUS_INSTALL_DIR says where to (~/.local/bin), CHORUS_RELEASES where from.
# Everything is in a function that the last line calls: a script that was cut off on its way does nothing.
set -eu

releases=${CHORUS_RELEASES:-https://github.com/OWNER/chorus/releases}
public_key=@PUBLIC_KEY@ # of the release; without one in this file only the sums are checked

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

have() {
  command -v "$1" >/dev/null 2>&1
}

fetch() { # an address, a file
  if have curl; then
    curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
  elif have wget; then
    wget --quiet --output-document "$2" "$1"
  else
    fail 'neither curl nor wget is installed'
  fi
}

find_target() {
  case "$(uname -s) $(uname -m)" in
    'Linux x86_64' | 'Linux amd64') echo x86_64-unknown-linux-musl ;;
    'Linux aarch64' | 'Linux arm64') echo aarch64-unknown-linux-musl ;;
    'Darwin arm64') echo aarch64-apple-darwin ;;
    'Darwin x86_64') echo x86_64-apple-darwin ;;
    *) return 1 ;;
  esac
}

find_newest() { # the sums of the newest release name its archives
  fetch "$releases/latest/download/SHA256SUMS" "$folder/newest" || return 1
  sed -n "s/^[0-9a-f]*  chorus-\(.*\)-$target\.tar\.gz$/\1/p" "$folder/newest" | head -n 1
}

check_sum() { # the archive; the sums are beside it
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $1$/\1/p" "$folder/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS of version $version has no line for $1"
  if have sha256sum; then
    found=$(sha256sum "$folder/$1")
  elif have shasum; then
    found=$(shasum -a 256 "$folder/$1")
  else
    fail 'neither sha256sum nor shasum is installed, so the archive cannot be checked'
  fi
  [ "${found%% *}" = "$wanted" ] || fail "$1 is not what was released: its SHA-256 is ${found%% *}, not $wanted"
}

check_signature() {
  case $public_key in @*) return 0 ;; esac
  if ! have minisign; then
    echo 'minisign is not installed: the signature of the sums was not checked' >&2
    return 0
  fi
  fetch "$at/SHA256SUMS.minisig" "$folder/SHA256SUMS.minisig" || fail 'the signature of the sums could not be fetched'
  minisign -Vqm "$folder/SHA256SUMS" -P "$public_key" || fail 'the signature of the sums is not that of the project'
}

uninstall() {
  [ -e "$into/chorus" ] || fail "there is no chorus in $into"
  rm -f "$into/chorus"
  echo "removed $into/chorus; keys in ~/.chorus and the data of hubs are still there"
}

install() {
  target=$(find_target) || fail "there is no chorus for $(uname -s) on $(uname -m)"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 1' INT TERM
  [ -n "$version" ] || version=$(find_newest) || fail "the newest release could not be found at $releases"
  [ -n "$version" ] || fail "the newest release has nothing for $target"
  at=$releases/download/v$version
  archive=chorus-$version-$target.tar.gz
  fetch "$at/SHA256SUMS" "$folder/SHA256SUMS" || fail "version $version could not be found at $releases"
  check_signature
  fetch "$at/$archive" "$folder/$archive" || fail "$archive could not be fetched"
  check_sum "$archive"
  tar -xzf "$folder/$archive" -C "$folder"
  mkdir -p "$into"
  # A running chorus keeps its file: the new one takes the name, not the place.
  cp "$folder/${archive%.tar.gz}/chorus" "$into/.chorus.new"
  chmod 755 "$into/.chorus.new"
  mv -f "$into/.chorus.new" "$into/chorus"
  echo "installed $("$into/chorus" --version) in $into"
  case ":$PATH:" in
    *":$into:"*) echo 'try it: chorus demo' ;;
    *) echo "$into is not on your PATH; add it in your shell's profile, or run $into/chorus demo" ;;
  esac
}

main() {
  into=${CHORUS_INSTALL_DIR:-$HOME/.local/bin}
  version=
  remove=
  while [ $# -gt 0 ]; do
    case $1 in
      --version)
        [ $# -gt 1 ] || fail '--version needs a version such as 0.1.0'
        version=${2#v}
        shift
        ;;
      --uninstall) remove=1 ;;
      *) fail "unknown option $1 (--version V, --uninstall)" ;;
    esac
    shift
  done
  if [ -n "$remove" ]; then uninstall; else install; fi
}

main "$@"
