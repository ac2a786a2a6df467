#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a TAP test on the first CPU available to this process. If that is not possible, prints the reason.
set -eu
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
command -v taskset >/dev/null || skip "taskset (util-linux) is not installed"
cpus=$(taskset -pc $$)
cpus=${cpus##*: } # such as 0-3,6
case $cpus in
  *[-,]*) exec taskset -c "${cpus%%[-,]*}" "$@" ;;
  *) skip "one CPU is all there is: the other tests ran on it" ;;
esac
