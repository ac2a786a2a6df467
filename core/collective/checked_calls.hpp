// SPDX-License-Identifier: Apache-2.0
// CheckedCalls: the calls of one member that were found good. Loops make the same calls over and over. If a
// call differs from an earlier one only in its tensors' addresses, it is not checked again, and its signature
// is taken from the earlier one.
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
  // Fills what Call::check() and close_digest() would fill. False: `call` is not known to be good, and
  // nothing was changed.
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
    // In a loop the signature is usually there already, from two rounds ago.
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
    // Without elements, the sizes do not tell whether tensors overlap: the entry is made empty.
    if (call.n != 0 && call.bytes == 0) entry.signature.collective = Collective::kNone;
  }

 private:
  struct Entry {
    Signature signature;
    dist_dtype out_dtype = 0;
    std::size_t bytes = 0;
    std::size_t out_bytes = 0;
  };
  static constexpr std::size_t kTensors = 8;  // how many entries calls with tensors have
  static constexpr std::size_t kBarrier = kTensors;

  // Whether it is a barrier, or an all_reduce of one dense tensor. These are frequent in loops, and so short
  // that the check would be a large part of their time.
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
