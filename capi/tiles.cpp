// SPDX-License-Identifier: Apache-2.0
// mesh.h: between logical devices.
#include "core/cross_device/tiles.hpp"

#include "capi/collective.hpp"
#include "capi/partition.hpp"

using namespace dist;
using namespace dist::capi;

namespace {

// Only who meets, what it is called, and how long one waits.
Status require_blocking(const dist_collective_options& options, const char* name) noexcept {
  if (options.out_work == nullptr) return kOk;
  return invalid_argument("%s() has no asynchronous form; options->out_work is set", name);
}

constexpr int64_t kNoWidths[DIST_MAX_NDIM] = {};
constexpr int32_t kZeroEdges[DIST_MAX_NDIM] = {};

Status read_halo(const dist_halo* given, const char* call, Halo* out) noexcept {
  DIST_TRY(require(given, call, "halo"));
  dist_halo known;
  DIST_TRY(read_options(given, &known, "dist_halo"));
  DIST_TRY(require(known.parts, call, "halo->parts"));
  if (known.ndim < 0 || known.ndim > DIST_MAX_NDIM)
    return invalid_argument("%s(): halo->ndim is %d; it is at most %d", call, known.ndim, DIST_MAX_NDIM);
  const auto ndim = static_cast<std::size_t>(known.ndim);
  out->parts = {known.parts, ndim};
  out->low = {known.low != nullptr ? known.low : kNoWidths, ndim};
  out->high = {known.high != nullptr ? known.high : kNoWidths, ndim};
  out->edges = {known.edges != nullptr ? known.edges : kZeroEdges, ndim};
  return kOk;
}

Status read_both(const dist_partition* from, const dist_partition* to, const char* call, Partition* out_from,
                 Partition* out_to) noexcept {
  DIST_TRY(require(from, call, "from"));
  DIST_TRY(require(to, call, "to"));
  DIST_TRY(read_partition(from, call, out_from));
  return read_partition(to, call, out_to);
}

}  // namespace

void dist_halo_init(dist_halo* halo, uint32_t struct_size_bytes) { init_options(halo, struct_size_bytes); }

dist_status dist_halo_exchange(dist_replica* device, const dist_tensor* in, const dist_halo* halo,
                               dist_tensor* out, const dist_collective_options* options) {
  constexpr const char* kCall = "dist_halo_exchange";
  return with_caller(device, options, kCall,
                     [&](const Caller& caller, const dist_collective_options& given) -> Status {
                       DIST_TRY(require_blocking(given, kCall));
                       DIST_TRY(require(in, kCall, "in"));
                       DIST_TRY(require(out, kCall, "out"));
                       Halo known;
                       DIST_TRY(read_halo(halo, kCall, &known));
                       return halo_exchange(caller, *in, known, *out);
                     });
}

dist_status dist_reshard(dist_replica* device, const dist_partition* from, const dist_partition* to,
                         const dist_tensor* in, dist_tensor* out, const dist_collective_options* options) {
  constexpr const char* kCall = "dist_reshard";
  return with_caller(device, options, kCall,
                     [&](const Caller& caller, const dist_collective_options& given) -> Status {
                       DIST_TRY(require_blocking(given, kCall));
                       Partition before;
                       Partition after;
                       DIST_TRY(read_both(from, to, kCall, &before, &after));
                       return reshard(caller, before, after, in, out);
                     });
}

dist_status dist_reshard_bytes(const dist_partition* from, const dist_partition* to, dist_dtype dtype,
                               int32_t logical_device, int64_t* out_bytes) {
  constexpr const char* kCall = "dist_reshard_bytes";
  return guard([&]() -> Status {
    DIST_TRY(require(out_bytes, kCall, "out_bytes"));
    Partition before;
    Partition after;
    DIST_TRY(read_both(from, to, kCall, &before, &after));
    DIST_TRY(check_reshard(before, after));
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    if (size == 0) return invalid_argument("%s(): %d is no dtype", kCall, dtype);
    const int32_t n = before.num_logical_devices;
    if (logical_device < -1 || logical_device >= n)
      return invalid_argument("%s(): there is no logical device %d: a replica has %d", kCall, logical_device,
                              n);
    int64_t bytes = 0;
    for (int32_t d = 0; d < n; ++d) {
      if (logical_device >= 0 && d != logical_device) continue;
      int64_t moved = 0;
      if (__builtin_mul_overflow(elements_to_move(before, after, d), size, &moved) ||
          __builtin_add_overflow(bytes, moved, &bytes)) {
        return invalid_argument("%s(): more bytes are moved than 64 bits can count", kCall);
      }
    }
    *out_bytes = bytes;
    return kOk;
  });
}
