# SPDX-License-Identifier: Apache-2.0
# Sourced by ./dev: `./dev demo`. It builds only the library and the trainer. Without hwloc, which the trainer does not need
# and which brings Perl with it on Debian, a compiler and all libraries are less than 320 MB.

demo() { # ARGUMENT...
  local dir=$build groups='core nettle' workers= replicas= arguments=()
  take_layout "$@"
  if [ "${1-}" = --ps ] || [[ $workers =~ ^[0-9]+$ && $replicas =~ ^[0-9]*$ && $workers != 1 ]]; then
    groups+=' grpc'
  else
    workers=
  fi
  say "dev: the demo installs the packages that are missing, builds libdist and the trainer, trains and writes a report."
  say "dev: this takes $demo_takes."
  [[ $groups != *grpc* ]] || say "dev: several processes need gRPC, which is installed and built in addition."
  provide $groups
  own "$build"
  if [ ! -f "$build/build.ninja" ]; then
    dir=$build-demo
    # shellcheck disable=SC2086
    setup "$dir" $part_of_it -Dnuma=auto -Dgloo=disabled -Donednn=disabled -Dhttp=disabled
  else
    setup "$dir"
  fi
  if [ "${1-}" = --ps ]; then
    train_on_servers "$@"
  else
    train "$@"
  fi
}

# Removes --workers W and --replicas R from the arguments: sets workers, replicas, and arguments to the others.
take_layout() { # ARGUMENT...
  while [ $# -gt 0 ]; do
    case $1 in
      -w | --workers) workers=${2-} && shift ;;
      -w?*) workers=${1#-w} ;;
      --workers=*) workers=${1#*=} ;;
      -r | --replicas) replicas=${2-} && shift ;;
      -r?*) replicas=${1#-r} ;;
      --replicas=*) replicas=${1#*=} ;;
      *) arguments+=("$1") ;;
    esac
    [ $# -eq 0 ] || shift
  done
}

# Ctrl-C ends the training after the current step, and the report is still written. dist-launch forwards the signal.
train() { # ARGUMENT...
  local report=$dir/demo-run.json page=$dir/demo-report.html status=0
  local trainer=$dir/examples/digits/train_digits
  local command=("$trainer" --report "$report" "$@")
  run meson compile -C "$dir" train_digits
  if [ -n "$workers" ]; then
    run meson compile -C "$dir" dist-grpc dist-launch
    command=("$dir/capi/tools/dist-launch" -n "$workers" ${replicas:+--replicas "$replicas"} --
      "$trainer" --report "$report" "${arguments[@]}")
  fi
  rm -f "$report" "$page"
  trap : INT
  run "${command[@]}" || status=$?
  trap - INT
  if [ -f "$report" ]; then
    run "$python" "${top}examples/digits/report.py" "$report" "$page" || [ $status -ne 0 ] || status=$?
  fi
  return $status
}

# Asynchronous training: dist-launch starts the servers, the workers and the coordinator.
train_on_servers() { # --ps P --workers W [STEPS]
  local traces=$dir/demo-ps-traces page=$dir/demo-ps-report.html checkpoint
  [[ $# -ge 4 && $1 = --ps && $3 = --workers ]] || die "demo: write --ps P --workers W [STEPS]"
  run meson compile -C "$dir" parameter_server dist-grpc dist-launch
  checkpoint=$(mktemp -d)/demo.ckpt
  rm -rf "$traces" "$page"
  mkdir "$traces"
  run "$dir/capi/tools/dist-launch" --ps "$2" --workers "$4" -- "$dir/examples/parameter_server" \
    "${top}examples/data/digits.csv" "$checkpoint" "${5:-2000}" "$traces"
  rm -rf "${checkpoint%/*}"
  run "$python" "${top}examples/parameter_server_report.py" "$traces" "$page"
}
