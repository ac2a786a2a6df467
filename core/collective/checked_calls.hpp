// SPDX-License-Identifier: Apache-2.0
// CheckedCalls: the calls of one member that were found good. Loops make the same calls over and over; of one
// that repeats another, but for where its tensors lie, nothing is checked or stated anew.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/collective/call.hpp"
#include "core/comm/signature.hpp"

namespace dist {

class CheckedCalls {
 public:
  // Fills what Call::check() and close_digest() would find and state. False: `call` is not known to be good,
  // and nothing was touched.
  bool recall(Call& call, const char* tag, Signature& signature) const noexcept {
    if (!repeatable(call)) return false;
    const Entry& entry = entries_[place(call)];
    const Signature& known = entry.signature;
    if (known.collective != call.collective || known.op != call.op || known.numerics != call.numerics) {
      return false;
    }
    if (tag == nullptr ? known.tag[0] != '\0' : std::strcmp(known.tag, tag) != 0) return false;
    bool in_place = false;
    if (call.n != 0) {
      const dist_tensor& in = call.in[0];
      const dist_tensor& out = call.out[0];
      if (in.dtype != known.dtype || out.dtype != entry.out_dtype || in.ndim != known.ndim ||
          out.ndim != known.ndim) {
        return false;
      }
      for (int32_t i = 0; i < in.ndim; ++i) {
        if (in.shape[i] != known.shape[i] || out.shape[i] != known.shape[i]) return false;
      }
      if (in.data == nullptr || out.data == nullptr) return false;
      in_place = in.data == out.data;
      const bool apart = !overlap(in.data, entry.bytes, out.data, entry.out_bytes);
      if (in_place ? entry.bytes != entry.out_bytes : !apart) return false;
    }
    // In a loop it is there already, from the round before the last.
    if (signature.digest != known.digest) signature = known;
    call.bytes = entry.bytes;
    call.strided = false;
    call.in_place = in_place;
    return true;
  }

  // `call` was found good, and makes `signature`.
  void keep(const Call& call, const Signature& signature) noexcept {
    if (!repeatable(call)) return;
    Entry& entry = entries_[place(call)];
    entry.signature = signature;
    entry.out_dtype = call.n != 0 ? call.out[0].dtype : 0;
    entry.bytes = call.bytes;
    entry.out_bytes =
        call.n != 0 ? static_cast<std::size_t>(signature.elements) * dtype_size(entry.out_dtype) : 0;
    // Where there are no elements, nothing says whether tensors overlap.
    if (call.n != 0 && call.bytes == 0) entry.signature.collective = Collective::kNone;
  }

 private:
  struct Entry {
    Signature signature;
    dist_dtype out_dtype = 0;
    std::size_t bytes = 0;
    std::size_t out_bytes = 0;
  };
  static constexpr std::size_t kTensors = 8;  // entries for them
  static constexpr std::size_t kBarrier = kTensors;

  // A barrier, or one dense tensor from every member that is reduced for all: what loops are made of, and
  // where the check weighs.
  static bool repeatable(const Call& call) noexcept {
    if (call.collective == Collective::kBarrier) return true;
    return call.collective == Collective::kAllReduce && call.n == 1 && call.plain() && call.in != nullptr &&
           call.out != nullptr && call.op != DIST_REDUCE_USER && call.element_bytes == 0 && call.salt == 0 &&
           call.in[0].strides == nullptr && call.out[0].strides == nullptr && call.in[0].ndim >= 0 &&
           call.in[0].ndim <= Signature::kDims &&
           (call.in[0].ndim == 0 || (call.in[0].shape != nullptr && call.out[0].shape != nullptr));
  }

  static std::size_t place(const Call& call) noexcept {
    if (call.n == 0) return kBarrier;
    const dist_tensor& in = call.in[0];
    const auto last = in.ndim > 0 ? static_cast<uint64_t>(in.shape[in.ndim - 1]) : 0;
    const uint64_t kind = last << 8 ^ static_cast<uint64_t>(call.op) << 4 ^ static_cast<uint64_t>(in.dtype);
    return kind * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(kTensors));
  }

  Entry entries_[kTensors + 1];
};

}  // namespace dist
