#!/bin/bash
set -euo pipefail
cat /usr/share/common-licenses/* | wc -w > /srv/words.txt
