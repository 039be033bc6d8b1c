#!/usr/bin/env bats
# A few seconds of scripts/soak; docs/security.md has the figures of a long run.
load helpers

@test "MachinesUsedAndKilledForAFewSecondsKeepTheirPromises" {
  if [ ! -e "${HOLT_HOME:-}/data/engine/engine.json" ]; then
    skip "HOLT_HOME has no prepared engine; scripts/test prepares one"
  fi
  HOLT_SOAK_HOME=$HOLT_HOME "$root/scripts/soak" --seconds 10 --machines 2 --seed 7 --holt "$HOLT" > "$BATS_TEST_TMPDIR/soak" 2>&1 || {
    cat "$BATS_TEST_TMPDIR/soak"
    return 1
  }
  grep -q '^held: ' "$BATS_TEST_TMPDIR/soak"
}
