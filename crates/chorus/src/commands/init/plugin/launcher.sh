#!/bin/sh
# Runs chorus for the host of this plugin. Editors have another PATH than shells, so its usual folders are tried too.
if [ -n "${CHORUS_BINARY:-}" ]; then
  exec "$CHORUS_BINARY" "$@"
fi
own=$(cd "$(dirname "$0")" && pwd -P)
IFS=:
for folder in $PATH "${HOME:-/}/.chorus/bin" "${HOME:-/}/.local/bin"; do
  # A host may put the folder of this script on the PATH.
  if [ -f "$folder/chorus" ] && [ -x "$folder/chorus" ] && [ "$(cd "$folder" && pwd -P)" != "$own" ]; then
    unset IFS
    exec "$folder/chorus" "$@"
  fi
done
unset IFS
exec npx -y chorushub@{{VERSION}} "$@"
