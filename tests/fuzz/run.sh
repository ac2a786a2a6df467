#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD [TARGET] [SECONDS]: runs one fuzz target or all, 60 s each. An input that fails is saved as
# BUILD/TARGET-KIND-HASH, and new inputs that cover more code in BUILD/corpus/TARGET.
set -eu
dir=$1 seconds=60 status=0
here=$(dirname -- "$0")
targets='assignment carrier checkpoint cluster_spec collectives connect_token csv grpc_link kubernetes options parameter_server partition rendezvous rpc slurm tensors texts tf_config workers'
for argument in "${@:2}"; do
  case " $targets " in
    *" $argument "*) targets=$argument ;;
    *)
      [[ $argument =~ ^[0-9]+$ ]] || {
        echo "fuzz: $argument is neither a number of seconds nor one of these targets: $targets" >&2
        exit 2
      }
      seconds=$argument
      ;;
  esac
done
for target in $targets; do
  meson compile -C "$dir" "fuzz_$target"
  mkdir -p "$dir/corpus/$target"
  python3 "$here/corpus.py" unpack "$here/corpus/$target" "$dir/known/$target"
  (set -x && "$dir/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=100 -max_len=256 -len_control=0 \
    -artifact_prefix="$dir/$target-" "$dir/corpus/$target" "$dir/known/$target") || status=$?
done
exit $status
