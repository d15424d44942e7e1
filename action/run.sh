#!/usr/bin/env bash
# Runs one command of chorus with the inputs of the action. The key is masked in the log and is in no argument.
set -euo pipefail
fail() { echo "::error::$1"; exit 1; }

[ -n "$INPUT_KEY" ] || fail 'there is no key: is the secret set, and may this workflow read it?'
echo "::add-mask::$INPUT_KEY"
[[ $INPUT_AGENT =~ ^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+$ ]] || fail 'agent is an address, such as ci@chorus'
[[ $INPUT_HUB =~ ^https?://[^[:space:]\"\\]+$ ]] || fail 'hub is an http or https URL'
[[ $INPUT_KEY =~ ^[A-Za-z0-9_]+$ ]] || fail 'the key is malformed'
[[ $INPUT_WAIT =~ ^[0-9]{1,4}$ ]] || fail 'wait is a number of seconds'

# A home of its own, readable by this user only, that is removed at the end.
CHORUS_HOME=$(mktemp -d "$RUNNER_TEMP/chorus.XXXXXX") && export CHORUS_HOME
trap 'rm -rf "$CHORUS_HOME"' EXIT
(umask 077 && printf '{"agent_id":"%s","api_key":"%s","hub_url":"%s"}\n' "$INPUT_AGENT" "$INPUT_KEY" "$INPUT_HUB" >"$CHORUS_HOME/config.json")
unset INPUT_KEY
cd "$CHORUS_HOME"

# The last value of a field in lines of JSON; outputs are one line each.
field() { sed -nE "s/.*\"$1\":\"(([^\"\\\\]|\\\\.)*)\".*/\1/p" | tail -n 1; }
output() { printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"; }

# The answer of a message: ok, or the code of its error; empty while there is none.
find_answer() {
  local status
  status=$(chorus status --json -- "$1") || return 0
  case $status in
    *'"receiver_response":'*'"status":"ok"'*) echo ok ;;
    *'"receiver_response":'*) field error_code <<<"$status" ;;
  esac
}

case $INPUT_COMMAND in
  send)
    [ -n "$INPUT_TO" ] || fail 'send needs a receiver in to'
    sent=$(printf '%s' "$INPUT_TEXT" | chorus send --json --culture "$INPUT_CULTURE" -- "$INPUT_TO" -)
    trace=$(field trace_id <<<"$sent")
    output trace_id "$trace"
    answer=
    until [ -n "$answer" ] || [ "$SECONDS" -ge "$INPUT_WAIT" ]; do
      answer=$(find_answer "$trace")
      [ -n "$answer" ] || sleep 1
    done
    output answer "$answer"
    [ -n "$answer" ] || [ "$INPUT_WAIT" = 0 ] || fail "$INPUT_TO did not answer within $INPUT_WAIT seconds"
    ;;
  ask)
    window=$((INPUT_WAIT > 0 ? INPUT_WAIT : 5))
    asked=$(chorus ask --json --instrument github-action --window "${window}s" --count 1 ${INPUT_TO:+--to "$INPUT_TO"} -- "$INPUT_TEXT")
    output trace_id "$(field query_id <<<"$asked")"
    output answer "$(field response_text <<<"$asked")"
    ;;
  advise)
    advised=$(chorus advise --json --nowhere --instrument github-action ${INPUT_TO:+--to "$INPUT_TO"} -- "$INPUT_TEXT")
    output trace_id "$(field frame_id <<<"$advised")"
    ;;
  *) fail 'command is send, ask or advise' ;;
esac
