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
  // The member's place in its group, on which the validity of a call with parts depends too.
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
    const Ones::Entry& entry = ones_.entries[place_of_one(op, in)];
    const Signature& known = entry.signature;
    if (known.collective != Collective::kAllReduce || known.op != op || !added_in(known, numerics) ||
        !tagged(known, tag)) {
      return {};
    }
    if (!entry.items[0].is_of(in, out)) return {};
    return {&known, &entry.one, in.data == out.data};
  }

  // The signature of a barrier with this tag that was validated before; NULL: unknown.
  const Signature* barrier(const char* tag) const noexcept {
    return barrier_.collective == Collective::kBarrier && tagged(barrier_, tag) ? &barrier_ : nullptr;
  }

  // Fills in what Call::check() and close_digest() would fill in. Returns false and changes nothing unless
  // `call` is known to be valid.
  bool recall(Call& call, const char* tag, Place where, Signature& signature) const noexcept {
    if (call.collective == Collective::kBarrier) {
      const Signature* const known = barrier(tag);
      return known != nullptr &&
             restore(call, {known, 0, false, signature.digest == known->digest}, signature);
    }
    if (call.collective != Collective::kAllReduce) return recall_from(others_, call, tag, where, signature);
    return call.n > 1 ? recall_from(lists_, call, tag, where, signature)
                      : recall_from(ones_, call, tag, where, signature);
  }

  // Remembers that `call` is valid and has this signature.
  void keep(const Call& call, Place where, const Signature& signature) noexcept {
    if (call.collective == Collective::kBarrier) {
      barrier_ = signature;
    } else if (call.collective != Collective::kAllReduce) {
      keep_in(others_, call, where, signature);
    } else if (call.n > 1) {
      keep_in(lists_, call, where, signature);
    } else {
      keep_in(ones_, call, where, signature);
    }
  }

 private:
  // Either the dense input and output of one tensor of an all_reduce, which have one shape; or one side of
  // another collective, in which a member may have only an input or only an output, for example at a root.
  struct Item {
    dist_dtype dtype{};
    dist_dtype out_dtype{};
    int32_t ndim = 0;  // -1: the side is absent
    int64_t shape[Signature::kDims] = {};
    std::size_t bytes = 0;
    std::size_t out_bytes = 0;

    // Returns false if the tensors cannot be cached. Tensors without elements are not cached, because their
    // sizes do not determine whether they overlap.
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

    static Item side(const dist_tensor* tensor) noexcept {
      Item side;
      side.ndim = tensor == nullptr ? -1 : tensor->ndim;
      if (tensor == nullptr) return side;
      side.dtype = tensor->dtype;
      std::copy_n(tensor->shape, tensor->ndim, side.shape);
      side.bytes = elements_of(*tensor) * dtype_size(side.dtype);
      return side;
    }
    bool is_side(const dist_tensor* tensor) const noexcept {
      if (tensor == nullptr) return ndim < 0;
      return tensor->ndim == ndim && tensor->dtype == dtype && tensor->data != nullptr &&
             std::equal(tensor->shape, tensor->shape + tensor->ndim, shape);
    }
  };

  // An all_reduce of one dense tensor, an all_reduce of a few, or another collective of one dense tensor.
  enum class Kind { kOne, kList, kOther };
  template <Kind kOfKind, std::size_t kNumPlaces, std::size_t kNumItems>
  struct Table {
    static constexpr Kind kKind = kOfKind;
    static constexpr std::size_t kPlaces = kNumPlaces;  // a power of two
    static constexpr std::size_t kItems = kNumItems;
    struct Entry {
      Signature signature;
      Item items[kItems];
      OneTensor one;  // of kOne
      std::size_t bytes = 0;
      Place where{};
      int32_t axis = 0;  // as given by the caller
    };
    Entry entries[kPlaces];
  };
  using Ones = Table<Kind::kOne, 8, 1>;
  using Lists = Table<Kind::kList, 2, 8>;
  using Others = Table<Kind::kOther, 8, 2>;

  // In a rooted collective, only the root sends or receives. The tensors that other members pass for that are
  // ignored.
  struct Used {
    const dist_tensor* in;
    const dist_tensor* out;
  };
  static Used used_by(const Call& call, int me) noexcept {
    return {call.gives(me) ? call.in : nullptr, call.gets(me) ? call.out : nullptr};
  }

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
  static bool plain_view(const dist_tensor* tensor) noexcept {
    return tensor == nullptr || (tensor->ndim > 0 && tensor->shape != nullptr && plain(*tensor));
  }

  static std::size_t hashed(uint64_t key, std::size_t entries) noexcept {
    return key * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(entries));
  }
  static std::size_t place_of_one(dist_reduce_op op, const dist_tensor& in) noexcept {
    const auto last = in.ndim > 0 ? static_cast<uint64_t>(in.shape[in.ndim - 1]) : 0;
    return hashed(last << 8 ^ static_cast<uint64_t>(op) << 4 ^ static_cast<uint64_t>(in.dtype),
                  Ones::kPlaces);
  }
  // Whether calls like this one are cached: validation would be a large part of their time.
  template <class In>
  static bool cached(const Call& call, const Used& used) noexcept {
    if (!call.plain() || call.op == DIST_REDUCE_USER || call.element_bytes != 0 || call.salt != 0)
      return false;
    if constexpr (In::kKind == Kind::kOther) {
      const CollectiveTraits& traits = call.traits();
      return call.n == 1 && !traits.pairs() && !traits.fused && call.splits == nullptr &&
             (used.in != nullptr || used.out != nullptr) && plain_view(used.in) && plain_view(used.out);
    } else {
      return call.n >= 1 && call.n <= In::kItems && used.in != nullptr && used.out != nullptr &&
             (In::kItems > 1 || (plain(used.in[0]) && plain(used.out[0])));
    }
  }
  template <class In>
  static std::size_t place(const Call& call, const Used& used) noexcept {
    const auto op = static_cast<uint64_t>(call.op);
    if constexpr (In::kKind == Kind::kOne) return place_of_one(call.op, used.in[0]);
    if constexpr (In::kKind == Kind::kList)
      return hashed(static_cast<uint64_t>(call.n) << 4 ^ op, In::kPlaces);
    const auto length = static_cast<uint64_t>((used.in != nullptr ? used.in : used.out)->shape[0]);
    return hashed(length << 8 ^ static_cast<uint64_t>(call.collective) << 4 ^ op, In::kPlaces);
  }

  template <class In>
  static bool recall_from(const In& table, Call& call, const char* tag, Place where,
                          Signature& signature) noexcept {
    constexpr bool kOther = In::kKind == Kind::kOther;
    const Used used = kOther ? used_by(call, where.me) : Used{call.in, call.out};
    if (!cached<In>(call, used)) return false;
    const auto& entry = table.entries[place<In>(call, used)];
    const Item* const items = entry.items;
    const Signature& known = entry.signature;
    if (known.collective != call.collective || known.op != call.op || !added_in(known, call.numerics) ||
        (!kOther && known.tensors != static_cast<int64_t>(call.n)) || !tagged(known, tag)) {
      return false;
    }
    Restored restored{&known, entry.bytes, true, signature.digest == known.digest};
    if constexpr (kOther) {
      if (known.root != call.root || known.kind != call.kind || entry.axis != call.axis ||
          entry.where != where || !items[0].is_side(used.in) || !items[1].is_side(used.out)) {
        return false;
      }
      const bool both = used.in != nullptr && used.out != nullptr;
      restored.in_place = both && used.in->data == used.out->data && call.traits().whole();
      if (restored.in_place
              ? items[0].bytes != items[1].bytes
              : both && overlap(used.in->data, items[0].bytes, used.out->data, items[1].bytes)) {
        return false;
      }
      // Sizes along the axis are not part of a digest.
      restored.there = restored.there && signature.elements == known.elements &&
                       signature.ndim == known.ndim &&
                       std::equal(known.shape, known.shape + Signature::kDims, signature.shape);
      call.in = used.in;
      call.out = used.out;
    } else {
      for (std::size_t t = 0; t < (In::kItems > 1 ? call.n : 1); ++t) {
        if (!items[t].is_of(call.in[t], call.out[t])) return false;
        restored.in_place = restored.in_place && call.in[t].data == call.out[t].data;
      }
    }
    return restore(call, restored, signature);
  }

  struct Restored {
    const Signature* known;
    std::size_t bytes;
    bool in_place;
    bool there;  // in a loop, the signature is usually still in place from two rounds ago
  };
  static bool restore(Call& call, const Restored& from, Signature& signature) noexcept {
    if (!from.there) signature = *from.known;
    call.bytes = from.bytes;
    call.strided = false;
    call.in_place = from.in_place;
    return true;
  }

  template <class In>
  static void keep_in(In& table, const Call& call, Place where, const Signature& signature) noexcept {
    constexpr bool kOther = In::kKind == Kind::kOther;
    const Used used{call.in, call.out};
    // Without elements, the sizes do not determine whether tensors overlap.
    if (!cached<In>(call, used) || call.strided || (kOther && call.bytes == 0)) return;
    auto& entry = table.entries[place<In>(call, used)];
    Item* const items = entry.items;
    entry.signature = signature;
    entry.bytes = call.bytes;
    entry.where = where;
    entry.axis = call.axis;
    if constexpr (kOther) {
      items[0] = Item::side(used.in);
      items[1] = Item::side(used.out);
    } else {
      for (std::size_t t = 0; t < call.n; ++t) {
        if (!items[t].keep(call.in[t], call.out[t])) entry.signature.collective = Collective::kNone;
      }
    }
    if constexpr (In::kKind == Kind::kOne) entry.one = OneTensor(call);
  }

  // Each kind of call has a table of its own, so that calls of one kind do not displace those of another.
  Ones ones_;
  Signature barrier_;
  Lists lists_;
  Others others_;
};

}  // namespace dist
