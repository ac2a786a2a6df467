// SPDX-License-Identifier: Apache-2.0
// CheckedCalls: a cache of one member's validated calls. Loops repeat the same calls. A call that differs
// from an earlier one only in its tensors' addresses is not validated again, and it reuses the earlier
// signature.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/collective/call.hpp"
#include "core/collective/one_tensor.hpp"
#include "core/comm/signature.hpp"

namespace dist {

class CheckedCalls {
 public:
  // A member of a group: what else the validity of a call with parts depends on.
  struct Place {
    int me;
    int size;
    bool operator==(const Place&) const = default;
  };

  // An all_reduce of one dense tensor that was validated before. Without a signature it is unknown.
  struct Again {
    const Signature* signature = nullptr;
    const OneTensor* one = nullptr;
    bool in_place = false;
  };
  Again find(dist_reduce_op op, dist_numerics numerics, const char* tag, const dist_tensor& in,
             const dist_tensor& out) const noexcept {
    if (!plain(in)) return {};
    const Entry& entry = entries_[place(op, in)];
    const Signature& known = entry.signature;
    if (known.collective != Collective::kAllReduce || known.op != op || !added_in(known, numerics) ||
        !tagged(known, tag)) {
      return {};
    }
    if (!entry.item.is_of(in, out)) return {};
    return {&known, &entry.one, in.data == out.data};
  }

  // The signature of a barrier with this tag that was validated before; NULL: unknown.
  const Signature* barrier(const char* tag) const noexcept {
    return barrier_.collective == Collective::kBarrier && tagged(barrier_, tag) ? &barrier_ : nullptr;
  }

  // Fills in what Call::check() and close_digest() would. Returns false and changes nothing if `call` is not
  // known to be valid.
  bool recall(Call& call, const char* tag, Place where, Signature& signature) const noexcept {
    if (call.collective == Collective::kBarrier) return recall_barrier(call, tag, signature);
    if (call.n > 1) return recall_list(call, tag, signature);
    if (!repeatable(call)) return recall_other(call, tag, where, signature);
    const Again again = find(call.op, call.numerics, tag, call.in[0], call.out[0]);
    if (again.signature == nullptr) return false;
    // In a loop the signature is usually still in place from two rounds ago.
    if (signature.digest != again.signature->digest) signature = *again.signature;
    call.bytes = again.one->bytes;
    call.strided = false;
    call.in_place = again.in_place;
    return true;
  }

  // Remembers that `call` is valid and has this signature.
  void keep(const Call& call, Place where, const Signature& signature) noexcept {
    if (call.collective == Collective::kBarrier) {
      barrier_ = signature;
      return;
    }
    if (call.n > 1) return keep_list(call, signature);
    if (!repeatable(call)) return keep_other(call, where, signature);
    Entry& entry = entries_[place(call.op, call.in[0])];
    entry.signature = signature;
    if (!entry.item.keep(call.in[0], call.out[0])) entry.signature.collective = Collective::kNone;
    entry.one = OneTensor(call);
  }

 private:
  // The dense input and output of one tensor of an all_reduce.
  struct Item {
    dist_dtype dtype{};
    dist_dtype out_dtype{};
    int32_t ndim = 0;
    int64_t shape[Signature::kDims] = {};
    std::size_t bytes = 0;
    std::size_t out_bytes = 0;

    // Returns false if they cannot be cached: without elements, the sizes do not determine whether tensors
    // overlap.
    bool keep(const dist_tensor& in, const dist_tensor& out) noexcept {
      const std::size_t elements = elements_of(in);
      if (!plain(in) || !plain(out) || elements == 0) return false;
      dtype = in.dtype;
      out_dtype = out.dtype;
      ndim = in.ndim;
      std::copy_n(in.shape, in.ndim, shape);
      bytes = elements * dtype_size(dtype);
      out_bytes = elements * dtype_size(out_dtype);
      return true;
    }
    bool is_of(const dist_tensor& in, const dist_tensor& out) const noexcept {
      if (in.dtype != dtype || out.dtype != out_dtype || in.ndim != ndim || out.ndim != ndim) return false;
      if (!plain(in) || !plain(out) || in.data == nullptr || out.data == nullptr) return false;
      for (int32_t i = 0; i < ndim; ++i) {
        if (in.shape[i] != shape[i] || out.shape[i] != shape[i]) return false;
      }
      return in.data == out.data ? bytes == out_bytes : !overlap(in.data, bytes, out.data, out_bytes);
    }
  };
  struct Entry {
    Signature signature;
    Item item;
    OneTensor one;
  };
  static constexpr std::size_t kTensors = 8;  // number of entries for calls with tensors

  static bool added_in(const Signature& known, dist_numerics numerics) noexcept {
    return known.numerics == numerics - DIST_NUMERICS_DEFAULT;
  }
  static bool tagged(const Signature& known, const char* tag) noexcept {
    return tag == nullptr ? known.tag[0] == '\0' : std::strcmp(known.tag, tag) == 0;
  }
  static bool plain(const dist_tensor& tensor) noexcept {
    return tensor.strides == nullptr && tensor.ndim >= 0 && tensor.ndim <= Signature::kDims &&
           (tensor.ndim == 0 || tensor.shape != nullptr);
  }

  // Whether it is an all_reduce of one dense tensor, or a barrier. They are frequent in loops and so short
  // that validation would be a large part of their time.
  static bool repeatable(const Call& call) noexcept {
    return call.collective == Collective::kAllReduce && call.n == 1 && call.plain() && call.in != nullptr &&
           call.out != nullptr && call.op != DIST_REDUCE_USER && call.element_bytes == 0 && call.salt == 0 &&
           plain(call.in[0]) && plain(call.out[0]);
  }

  static std::size_t place(dist_reduce_op op, const dist_tensor& in) noexcept {
    const auto last = in.ndim > 0 ? static_cast<uint64_t>(in.shape[in.ndim - 1]) : 0;
    const uint64_t kind = last << 8 ^ static_cast<uint64_t>(op) << 4 ^ static_cast<uint64_t>(in.dtype);
    return kind * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(kTensors));
  }

  bool recall_barrier(Call& call, const char* tag, Signature& signature) const noexcept {
    if (barrier(tag) == nullptr) return false;
    if (signature.digest != barrier_.digest) signature = barrier_;
    call.bytes = 0;
    call.strided = false;
    call.in_place = false;
    return true;
  }

  // An all_reduce of a list of a few dense tensors.
  struct ListEntry {
    static constexpr std::size_t kMost = 8;
    Signature signature;
    std::size_t bytes = 0;
    Item items[kMost];
  };
  static constexpr std::size_t kLists = 2;

  static bool list_repeatable(const Call& call) noexcept {
    return call.collective == Collective::kAllReduce && call.n <= ListEntry::kMost && call.plain() &&
           call.in != nullptr && call.out != nullptr && call.op != DIST_REDUCE_USER &&
           call.element_bytes == 0 && call.salt == 0;
  }
  static std::size_t list_place(const Call& call) noexcept {
    const uint64_t kind = static_cast<uint64_t>(call.n) << 4 ^ static_cast<uint64_t>(call.op);
    return kind * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(kLists));
  }

  bool recall_list(Call& call, const char* tag, Signature& signature) const noexcept {
    if (!list_repeatable(call)) return false;
    const ListEntry& entry = lists_[list_place(call)];
    const Signature& known = entry.signature;
    if (known.collective != call.collective || known.op != call.op || !added_in(known, call.numerics) ||
        known.tensors != static_cast<int64_t>(call.n) || !tagged(known, tag)) {
      return false;
    }
    bool in_place = true;
    for (std::size_t t = 0; t < call.n; ++t) {
      if (!entry.items[t].is_of(call.in[t], call.out[t])) return false;
      in_place = in_place && call.in[t].data == call.out[t].data;
    }
    if (signature.digest != known.digest) signature = known;
    call.bytes = entry.bytes;
    call.strided = false;
    call.in_place = in_place;
    return true;
  }

  void keep_list(const Call& call, const Signature& signature) noexcept {
    if (!list_repeatable(call) || call.strided) return;
    ListEntry& entry = lists_[list_place(call)];
    entry.signature = signature;
    entry.bytes = call.bytes;
    for (std::size_t t = 0; t < call.n; ++t) {
      if (!entry.items[t].keep(call.in[t], call.out[t])) entry.signature.collective = Collective::kNone;
    }
  }

  // Other collectives of one dense tensor. A member may have only an input or only an output, for example at
  // a root.
  struct Side {
    int32_t ndim = -1;  // -1: absent
    dist_dtype dtype{};
    int64_t shape[Signature::kDims] = {};

    static Side of(const dist_tensor* tensor) noexcept {
      Side side;
      if (tensor == nullptr) return side;
      side.ndim = tensor->ndim;
      side.dtype = tensor->dtype;
      std::copy_n(tensor->shape, tensor->ndim, side.shape);
      return side;
    }
    bool is_of(const dist_tensor* tensor) const noexcept {
      if (tensor == nullptr) return ndim < 0;
      return tensor->ndim == ndim && tensor->dtype == dtype && tensor->data != nullptr &&
             std::equal(tensor->shape, tensor->shape + tensor->ndim, shape);
    }
    std::size_t bytes() const noexcept {
      int64_t elements = ndim < 0 ? 0 : 1;
      for (int32_t i = 0; i < ndim; ++i) elements *= shape[i];
      return static_cast<std::size_t>(elements) * dtype_size(dtype);
    }
  };
  struct OtherEntry {
    Signature signature;
    Side in;
    Side out;
    Place where{};
    int32_t axis = 0;  // as given by the caller
    std::size_t bytes = 0;
    std::size_t in_bytes = 0;
    std::size_t out_bytes = 0;
  };
  static constexpr std::size_t kOthers = 8;

  static bool plain_view(const dist_tensor* tensor) noexcept {
    return tensor == nullptr || (tensor->strides == nullptr && tensor->shape != nullptr && tensor->ndim > 0 &&
                                 tensor->ndim <= Signature::kDims);
  }
  // Only a root sends, or receives; the tensors that other members pass there are ignored.
  struct Used {
    const dist_tensor* in;
    const dist_tensor* out;
  };
  static Used used_by(const Call& call, int me) noexcept {
    return {call.gives(me) ? call.in : nullptr, call.gets(me) ? call.out : nullptr};
  }
  static bool other_repeatable(const Call& call, const Used& used) noexcept {
    const CollectiveTraits& traits = call.traits();
    return call.n == 1 && !traits.pairs() && !traits.fused && call.collective != Collective::kAllReduce &&
           call.plain() && call.op != DIST_REDUCE_USER && call.element_bytes == 0 && call.salt == 0 &&
           call.splits == nullptr && (used.in != nullptr || used.out != nullptr) && plain_view(used.in) &&
           plain_view(used.out);
  }
  static std::size_t other_place(const Call& call, const Used& used) noexcept {
    const dist_tensor& any = used.in != nullptr ? *used.in : *used.out;
    const uint64_t kind = static_cast<uint64_t>(any.shape[0]) << 8 ^
                          static_cast<uint64_t>(call.collective) << 4 ^ static_cast<uint64_t>(call.op);
    return kind * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(kOthers));
  }

  bool recall_other(Call& call, const char* tag, Place where, Signature& signature) const noexcept {
    const Used used = used_by(call, where.me);
    if (!other_repeatable(call, used)) return false;
    const OtherEntry& entry = others_[other_place(call, used)];
    const Signature& known = entry.signature;
    if (known.collective != call.collective || known.op != call.op || !added_in(known, call.numerics) ||
        known.root != call.root || known.kind != call.kind || entry.axis != call.axis ||
        entry.where != where || !entry.in.is_of(used.in) || !entry.out.is_of(used.out)) {
      return false;
    }
    if (!tagged(known, tag)) return false;
    const bool both = used.in != nullptr && used.out != nullptr;
    const bool in_place = both && used.in->data == used.out->data && call.traits().whole();
    if (in_place ? entry.in_bytes != entry.out_bytes
                 : both && overlap(used.in->data, entry.in_bytes, used.out->data, entry.out_bytes)) {
      return false;
    }
    // Sizes along the axis are not part of a digest.
    if (signature.digest != known.digest || signature.elements != known.elements ||
        signature.ndim != known.ndim ||
        !std::equal(known.shape, known.shape + Signature::kDims, signature.shape)) {
      signature = known;
    }
    call.in = used.in;
    call.out = used.out;
    call.bytes = entry.bytes;
    call.strided = false;
    call.in_place = in_place;
    return true;
  }

  void keep_other(const Call& call, Place where, const Signature& signature) noexcept {
    // Without elements, the sizes do not determine whether tensors overlap.
    const Used used{call.in, call.out};
    if (!other_repeatable(call, used) || call.bytes == 0) return;
    OtherEntry& entry = others_[other_place(call, used)];
    entry.signature = signature;
    entry.in = Side::of(call.in);
    entry.out = Side::of(call.out);
    entry.where = where;
    entry.axis = call.axis;
    entry.bytes = call.bytes;
    entry.in_bytes = entry.in.bytes();
    entry.out_bytes = entry.out.bytes();
  }

  Entry entries_[kTensors];
  Signature barrier_;
  ListEntry lists_[kLists];
  OtherEntry others_[kOthers];
};

}  // namespace dist
