// SPDX-License-Identifier: Apache-2.0
// The tensors of one collective call, checked, and those of its peers.
#pragma once

#include <cstddef>

#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "core/collective/partition.hpp"
#include "core/cross_device/collectives.hpp"

namespace dist {

// Elements of a tensor that was checked before.
inline std::size_t elements_of(const dist_tensor& tensor) noexcept {
  std::size_t elements = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) elements *= static_cast<std::size_t>(tensor.shape[i]);
  return elements;
}

inline bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

// The report on a member's output of tensor t that overlaps a buffer of `peer`.
ErrorRecord overlap_report(const Caller& caller, int member, int peer, std::size_t t) noexcept;

// One side of a call: n outputs and (where this member gives any) n inputs.
class TensorList {
 public:
  // Checks each tensor and states the list. `out_dtype(in_dtype)` is what an output's dtype must be; `in` may
  // be NULL.
  template <class OutDtype>
  Status check(const dist_tensor* in, dist_tensor* out, std::size_t n, Statement& statement,
               OutDtype&& out_dtype) noexcept {
    if (n != 0 && out == nullptr) return invalid_argument("out is NULL, but n is %zu", n);
    in_ = in;
    out_ = out;
    n_ = n;
    for (std::size_t t = 0; t < n; ++t) {
      DIST_TRY(check_one(t));
      if (in != nullptr) {
        const dist_dtype wanted = out_dtype(in[t].dtype);
        if (out[t].dtype != wanted) return wrong_dtype(t, wanted);
      }
    }
    state(statement);
    return kOk;
  }

  std::size_t size() const noexcept { return n_; }
  std::size_t bytes() const noexcept { return bytes_; }  // of the outputs
  std::size_t units() const noexcept { return units_; }
  bool in_place() const noexcept { return in_place_; }
  const dist_tensor* in() const noexcept { return in_; }
  dist_tensor* out() const noexcept { return out_; }

  // Fills the line that peers read.
  void publish(Line& line) const noexcept;

  // Whether the outputs of one member and any buffer of its peers overlap in a way that a collective would
  // trip over; then `out_overlap` gets the report. The caller has entered.
  bool overlaps_peers(const Caller& caller, int member, ErrorRecord* out_overlap) const noexcept;

 private:
  Status check_one(std::size_t t) noexcept;
  Status wrong_dtype(std::size_t t, dist_dtype wanted) const noexcept;
  void state(Statement& statement) const noexcept;

  const dist_tensor* in_ = nullptr;
  dist_tensor* out_ = nullptr;
  std::size_t n_ = 0;
  std::size_t bytes_ = 0;
  std::size_t units_ = 0;
  bool in_place_ = true;
};

// Peer `p`'s buffers of tensor t in the meeting that the caller is in.
inline const void* peer_in(const Caller& caller, int p, std::size_t n, std::size_t t) noexcept {
  const Line::Buffers& theirs = caller.group.line(caller.me, p).buffers;
  return n == 1 ? theirs.in : theirs.ins[t].data;
}
inline void* peer_out(const Caller& caller, int p, std::size_t n, std::size_t t) noexcept {
  const Line::Buffers& theirs = caller.group.line(caller.me, p).buffers;
  return n == 1 ? theirs.out : theirs.outs[t].data;
}
// All replicas gave one and the same output: it is written once.
inline bool mirrored(const Caller& caller, std::size_t n, std::size_t t) noexcept {
  const void* first = peer_out(caller, 0, n, t);
  for (int p = 1; p < caller.group.size(); ++p) {
    if (peer_out(caller, p, n, t) != first) return false;
  }
  return caller.group.size() > 1;
}

}  // namespace dist
