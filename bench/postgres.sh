# shellcheck shell=bash
# A PostgreSQL server of its own for a benchmark; it syncs to the disk as it does by default. To be sourced.
#
#   postgres_up            starts it; $postgres_dir is its socket's folder
#   postgres_database N    makes an empty database called N and prints its URL
#   postgres_down          stops it and removes its files

postgres_dir=
postgres_as=()
postgres_bin=

postgres_up() {
  postgres_bin=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1)
  [ -n "$postgres_bin" ] || { echo 'bench: PostgreSQL is not installed (Debian package: postgresql)' >&2; return 1; }
  postgres_dir=$(mktemp -d "${TMPDIR:-/tmp}/chorus-bench-pg.XXXXXX")
  if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root; its package made a user for it
    chown postgres "$postgres_dir"
    postgres_as=(runuser -u postgres --)
  fi
  (cd "$postgres_dir" &&
    "${postgres_as[@]}" "$postgres_bin/initdb" -D "$postgres_dir/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null &&
    "${postgres_as[@]}" "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -w -l "$postgres_dir/log" \
      -o "-c listen_addresses= -c unix_socket_directories=$postgres_dir" start >/dev/null)
}

postgres_database() {
  (cd "$postgres_dir" && "${postgres_as[@]}" "$postgres_bin/createdb" -h "$postgres_dir" -U postgres "$1") || return 1
  echo "postgres://postgres@${postgres_dir//\//%2F}/$1"
}

postgres_down() {
  [ -n "$postgres_dir" ] || return 0
  (cd / && "${postgres_as[@]}" "$postgres_bin/pg_ctl" -D "$postgres_dir/data" -m immediate stop >/dev/null 2>&1) || true
  rm -rf "$postgres_dir"
  postgres_dir=
}
