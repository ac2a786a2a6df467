// SPDX-License-Identifier: Apache-2.0
// Call: the arguments of one member's collective, validated as far as one member can do that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/collective_traits.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/comm/call_descriptor.hpp"
#include "core/comm/group.hpp"
#include "core/comm/signature.hpp"
#include "core/kernel/tree.hpp"
#include "dist/types.h"

namespace dist {

// An operator of the host: acc[i] = op(acc[i], in[i]) for `count` of its elements.
using UserOp = void (*)(void* acc, const void* in, int64_t count, dist_dtype dtype, void* user_data);

// The maximum size of an element of a host operator. Folding it needs a copy on the stack.
inline constexpr std::size_t kMostElementBytes = 4096;

// Stack memory for a TREE fold with a host operator: one slot for each subtotal that has not been joined yet.
inline constexpr std::size_t kTreeRoom = std::size_t{6} << 10;
// The size of a slot in a TREE fold of this many contributions, which limits the size of an element.
constexpr std::size_t most_tree_element(std::size_t contributions) noexcept {
  return std::min(kMostElementBytes, kTreeRoom / tree_slots(contributions) / 64 * 64);
}

// The maximum number of contributions of all members to a sum. Their pointers and weights are on the stack.
constexpr std::size_t most_contributions(int members) noexcept {
  return std::max<std::size_t>(1024, std::size_t{16} * static_cast<std::size_t>(members));
}

struct Call {
  Collective collective = Collective::kNone;
  dist_reduce_op op{};  // 0: the bits are copied
  int32_t root = -1;    // -1: the collective has no root
  int32_t kind = 0;     // scan: DIST_SCAN_...
  dist_numerics numerics = DIST_NUMERICS_ORDERED;
  int32_t axis = 0;  // negative: counted from each tensor's last dimension; axis_of() returns the dimension
  UserOp user_op = nullptr;
  void* user_data = nullptr;
  Group* group = nullptr;           // fails if the host's operator throws; NULL: no such operator
  std::size_t element_bytes = 0;    // for a host operator, whose elements are not cut; 0: the dtype's
  const dist_tensor* in = nullptr;  // contributions * n tensors, one list after another
  const dist_tensor* out = nullptr;
  std::size_t n = 0;
  std::size_t contributions = 0;        // as given by the caller; 0 means one
  const dist_tensor* states = nullptr;  // reduce_apply
  const double* weights = nullptr;
  const int64_t* splits = nullptr;
  const int64_t* offsets = nullptr;  // where the splits begin: offset_splits()
  uint64_t salt = 0;                 // digest of other data that must be equal, such as a nest's structure
  int32_t destination = -1;
  int32_t source = -1;

  // Set by check().
  std::size_t bytes = 0;  // size of the tensors in the signature; equal on all members if sized_alike()
  bool strided = false;   // some tensor is strided
  bool in_place = false;  // every output is its input

  // Whether every member brings one contribution, and all have the same weight.
  bool plain() const noexcept { return contributions == 0 && weights == nullptr; }
  std::size_t lists() const noexcept { return contributions == 0 ? 1 : contributions; }
  const CollectiveTraits& traits() const noexcept { return traits_of(collective); }
  bool reduces() const noexcept { return traits().reduces; }
  bool rooted() const noexcept { return traits().rooted(); }
  // Whether the member with this rank brings tensors, and whether it receives some.
  bool gives(int rank) const noexcept { return traits().sources != Ends::kRoot || rank == root; }
  bool gets(int rank) const noexcept { return traits().destinations != Ends::kRoot || rank == root; }
  // Whether inputs are joined into outputs along the axis, and whether inputs are cut along it.
  bool joins() const noexcept { return traits().joins; }
  bool cuts() const noexcept { return traits().cuts; }
  // The dimension of tensor t along which parts are cut or joined, counted from the front.
  int32_t axis_of(std::size_t t) const noexcept {
    return axis < 0 ? axis + (in != nullptr ? in[t] : out[t]).ndim : axis;
  }
  // Whether tensors may fail to fit together even if they have no elements.
  bool must_fit() const noexcept { return !traits().whole(); }
  // Whether all members know the size of the work before they meet.
  bool sized_alike() const noexcept { return !joins() && (!cuts() || reduces()); }
  dist_dtype out_dtype(dist_dtype in_dtype) const noexcept {
    return op == DIST_REDUCE_MEAN ? dtype_of_mean(in_dtype) : in_dtype;
  }

  // Whether it is an all_reduce of one tensor, whose bytes can travel with the slot if it is small. Members
  // may differ in whether their tensors are strided, so no decision that all members share may depend on
  // that.
  bool can_travel() const noexcept {
    return collective == Collective::kAllReduce && n == 1 && plain() && op != DIST_REDUCE_USER &&
           numerics == DIST_NUMERICS_ORDERED;
  }

  // Validates everything that this member can see, as rank `me` of a group of `size`, and fills in the
  // signature.
  Status check(int me, int size, Signature& signature) noexcept;
  // Call this before describe_in() if the call has splits. `room` has space for size + 1 offsets.
  void offset_splits(int64_t* room, int size) noexcept;
  void describe_in(CallDescriptor& descriptor) const noexcept;
  // acc[i] = op(acc[i], in[i]) with the host's operator. If it throws, the group fails.
  void fold_in(void* acc, const void* in, int64_t count, dist_dtype dtype) const noexcept;

 private:
  Status check_op_of(std::size_t t) const noexcept;
  Status check_elements_of(std::size_t t) const noexcept;
  Status check_arguments(int me, int size) noexcept;
  Status check_tensors(int size) noexcept;
  bool check_dense(Signature& signature) noexcept;
  Status check_options(int me, int size) noexcept;
  Status check_input(std::size_t t, TensorSize* size) noexcept;
  Status check_output(std::size_t t, bool given, TensorSize* size) noexcept;
  Status check_shapes(std::size_t t, int size) const noexcept;
  Status check_overlap(std::size_t t, const TensorSize& in_size, const TensorSize& out_size) noexcept;
  void state(Signature& signature) const noexcept;
  void state_tensors(Signature& signature, uint64_t digest, int64_t elements) const noexcept;
};

// Writes what describe_in() writes for an all_reduce of one dense tensor, as far as peers read it.
void describe_one_in(CallDescriptor& descriptor, const dist_tensor& in, const dist_tensor& out) noexcept;

// Writes the report on an input and an output of two members that overlap.
void overlap_report(const MemberNames& group, int rank, int peer, std::size_t t, bool shares,
                    ErrorRecord* out_why) noexcept;

// Number of contiguous elements, counted from the innermost dimension outwards to dimension `from`.
inline std::size_t contiguous_tail(const int64_t* shape, const int64_t* strides, int32_t ndim,
                                   int32_t from) noexcept {
  int64_t tail = 1;
  for (int32_t i = ndim - 1; i >= from; --i) {
    if (strides != nullptr && shape[i] != 1 && strides[i] != tail) break;
    tail *= shape[i];
  }
  return static_cast<std::size_t>(tail);
}

inline bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace dist
