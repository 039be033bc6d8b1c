#!/bin/bash
# Harbor reads the score from reward.txt, whatever this script's exit code is.
expected=$(find -L /usr/share/common-licenses -type f -exec cat {} + | wc -w)
if [ "$expected" -gt 0 ] && [ "$(tr -d ' \n' < /srv/words.txt)" = "$expected" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
