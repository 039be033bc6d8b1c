#!/usr/bin/env bats
# Completions, asked for as the shells do, and manual pages. Nothing here starts a machine.
load helpers

setup() {
  export HOLT_HOME=$BATS_TEST_TMPDIR/home
  unset HOLT_QUIET
  # A machine is known by its folder.
  mkdir -p "$HOLT_HOME/state/machines/devel" "$HOLT_HOME/state/machines/web"
  PATH=$(dirname "$HOLT"):$PATH
}

# bash_offers LINE WORD...: what bash's script replies to LINE, which bash has cut into these words. One a line.
bash_offers() {
  bash --noprofile --norc -c '
    compopt() { :; }  # works only while bash itself completes
    source <(holt completion bash)
    COMP_LINE=$1 COMP_POINT=${#1}
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _holt
    printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
expect_offers() {
  local expected=$1
  shift
  [ "$(bash_offers "$@")" = "$expected" ] || { printf 'for "%s":\n%s\n' "$1" "$(bash_offers "$@")"; return 1; }
}

@test "CompletionOfBashKnowsVerbsFlagsAndNames" {
  expect_offers run "holt ru" holt ru
  expect_offers $'inspect\nimport' "holt image i" holt image i
  expect_offers --timeout "holt exec --time" holt exec --time
  expect_offers $'devel\nweb' "holt exec " holt exec ""
  expect_offers web "holt exec -it  w" holt exec -it w
  expect_offers "" "holt exec web l" holt exec web l
  expect_offers $'bash\nzsh\nfish' "holt completion " holt completion ""
  # The cursor stands behind "de", whatever follows.
  [ "$(bash --noprofile --norc -c 'source <(holt completion bash); COMP_LINE="holt stop devil" COMP_POINT=12
    COMP_WORDS=(holt stop devil) COMP_CWORD=2; _holt; echo "${COMPREPLY[@]}"')" = devel ]
}

@test "CompletionOfBashRepliesWhatStandsBehindTheLastCut" {
  expect_offers always "holt --color=al" holt --color = al
  expect_offers $'auto\nalways\nnever' "holt --color=" holt --color =
  expect_offers missing "holt run --pull mi" holt run --pull mi
  cd "$BATS_TEST_TMPDIR"
  mkdir folder
  touch 'file with spaces'
  expect_offers "devel:" "holt cp d" holt cp d
  expect_offers "file with spaces" "holt cp -r fi" holt cp -r fi
  expect_offers folder "holt --home fo" holt --home fo
}

@test "CompletionOfBashTakesAMachineForAFileOnlyBesideFiles" {
  options() {
    bash --noprofile --norc -c 'compopt() { echo "$2"; }; source <(holt completion bash)
      COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=2; _holt' bash "$1"
  }
  cd "$BATS_TEST_TMPDIR"
  [ "$(options 'holt cp dev')" = nospace ]
  touch device
  [ "$(options 'holt cp dev')" = $'nospace\nfilenames' ]
}

@test "CompletionIsQuietAndMakesNothing" {
  rm -rf "$HOLT_HOME"
  holt_ __complete exec ""
  expect_code 0
  expect_out ""
  [ -z "$err" ]
  [ ! -e "$HOLT_HOME" ]
  run env -i "$HOLT" __complete exec ""
  [ "$status" = 0 ]
  [ -z "$output" ]
  mkdir -p "$BATS_TEST_TMPDIR/other/state/machines/elsewhere"
  holt_ __complete --home "$BATS_TEST_TMPDIR/other" exec ""
  expect_out elsewhere
}

@test "CompletionOfZshIsWellFormed" {
  command -v zsh > /dev/null || skip "zsh is not installed"
  holt completion zsh > "$BATS_TEST_TMPDIR/_holt"
  zsh -f -n "$BATS_TEST_TMPDIR/_holt"
}

@test "CompletionOfFishKnowsVerbsAndNames" {
  command -v fish > /dev/null || skip "fish is not installed"
  holt completion fish > "$BATS_TEST_TMPDIR/holt.fish"
  run env HOME="$BATS_TEST_TMPDIR" fish --no-config -c "source $BATS_TEST_TMPDIR/holt.fish; complete -C 'holt exec w'"
  [ "$output" = web ]
}

@test "FRONT-02 AScriptOfCompletionsAsJsonIsAStringOfIt" {
  holt_ --json completion fish
  expect_json '.shell == "fish" and (.script | contains("complete -c holt"))'
}

@test "CompletionOfAnUnknownShellIsUsage" {
  holt_ completion tcsh
  expect_code 2
  expect_err_has "'tcsh' is none of bash, zsh and fish"
  holt_ completion
  expect_code 2
}

@test "ManualPagesAreWhatTheFormatterTakesWithoutAWarning" {
  holt_ dev man "$BATS_TEST_TMPDIR/pages"
  expect_code 0
  expect_out ""
  [ -s "$BATS_TEST_TMPDIR/pages/holt.1" ]
  holt_ --json dev man "$BATS_TEST_TMPDIR/pages"
  expect_json 'length > 30 and all(.[]; endswith(".1"))'
  command -v groff > /dev/null || skip "groff is not installed"
  for page in "$BATS_TEST_TMPDIR"/pages/*.1; do
    run groff -man -ww -z -Tutf8 "$page"
    [ "$status" = 0 ]
    [ -z "$output" ] || { echo "$page: $output"; return 1; }
  done
  text=$(groff -man -Tascii -P-cbou "$BATS_TEST_TMPDIR/pages/holt-run.1")
  grep -q -e '--timeout DURATION' <<< "$text"
  grep -qF "holt run -- python3 -c 'print(2**10)'" <<< "$text"
}
