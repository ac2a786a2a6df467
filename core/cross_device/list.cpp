// SPDX-License-Identifier: Apache-2.0
#include "core/cross_device/list.hpp"

#include <algorithm>
#include <cstdio>

namespace dist {
namespace {

// "in" of a single tensor, "in[7]" of a list.
void label(char (&text)[32], const char* name, std::size_t n, std::size_t t) noexcept {
  if (n == 1) {
    std::snprintf(text, sizeof text, "%s", name);
  } else {
    std::snprintf(text, sizeof text, "%s[%zu]", name, t);
  }
}

// check_tensor() and what collectives ask for beyond; the label is made only where there is something to say.
Status check_dense(const dist_tensor& tensor, const char* name, std::size_t n, std::size_t t,
                   TensorSize* size) noexcept {
  if (check_tensor(tensor, name, size).ok() && size->contiguous) return kOk;
  char what[32];
  label(what, name, n, t);
  DIST_TRY(check_tensor(tensor, what, size));
  return invalid_argument("%s has gaps between its elements: give a row-major tensor (strides NULL)", what);
}

}  // namespace

Status TensorList::check_one(std::size_t t) noexcept {
  TensorSize size;
  DIST_TRY(check_dense(out_[t], "out", n_, t, &size));
  bytes_ += size.bytes;
  units_ += units_of(size.bytes);
  if (in_ == nullptr) return kOk;
  TensorSize in_size;
  DIST_TRY(check_dense(in_[t], "in", n_, t, &in_size));
  if (!same_shape(in_[t], out_[t])) {
    char in_text[96];
    char out_text[96];
    describe(in_[t], in_text, sizeof in_text);
    describe(out_[t], out_text, sizeof out_text);
    return invalid_argument("tensor %zu: in is %s and out %s; their shapes must be equal", t, in_text,
                            out_text);
  }
  if (in_[t].data == out_[t].data) {
    if (in_size.bytes != size.bytes) {
      return invalid_argument(
          "tensor %zu: in place needs one dtype, and %s becomes %s here; give another buffer for "
          "out",
          t, dtype_name(in_[t].dtype), dtype_name(out_[t].dtype));
    }
  } else {
    in_place_ = false;
    if (size.bytes != 0 && overlap(in_[t].data, in_size.bytes, out_[t].data, size.bytes)) {
      return invalid_argument("tensor %zu: in and out overlap without being the same; give one buffer or two",
                              t);
    }
  }
  return kOk;
}

Status TensorList::wrong_dtype(std::size_t t, dist_dtype wanted) const noexcept {
  return invalid_argument("tensor %zu: out is %s; in is %s, so out must be %s", t, dtype_name(out_[t].dtype),
                          dtype_name(in_[t].dtype), dtype_name(wanted));
}

void TensorList::state(Statement& statement) const noexcept {
  statement.tensors = static_cast<int64_t>(n_);
  uint64_t signature = statement.signature;
  int64_t elements = 0;
  for (std::size_t t = 0; t < n_; ++t) {
    // Members that give no input (broadcast) state their output: dtype and shape are those of the root's.
    const dist_tensor& tensor = in_ != nullptr ? in_[t] : out_[t];
    signature =
        mix(signature, static_cast<uint32_t>(tensor.dtype) | static_cast<uint64_t>(tensor.ndim) << 32);
    for (int32_t i = 0; i < tensor.ndim; ++i)
      signature = mix(signature, static_cast<uint64_t>(tensor.shape[i]));
    elements += static_cast<int64_t>(elements_of(tensor));
  }
  if (n_ > 0) {
    const dist_tensor& first = in_ != nullptr ? in_[0] : out_[0];
    statement.dtype = first.dtype;
    statement.ndim = first.ndim;
    for (int32_t i = 0; i < first.ndim && i < Statement::kDims; ++i) statement.shape[i] = first.shape[i];
  }
  statement.elements = elements;
  statement.signature = signature;
}

void TensorList::publish(Line& line) const noexcept {
  const dist_tensor* in = in_ != nullptr ? in_ : out_;
  line.extra = n_ == 0 ? nullptr : out_[0].data;
  line.buffers = {n_ == 0 ? nullptr : in[0].data, n_ == 0 ? nullptr : out_[0].data, in, out_};
}

ErrorRecord overlap_report(const Caller& caller, int member, int peer, std::size_t t) noexcept {
  ErrorRecord error;
  error.code = DIST_INVALID_ARGUMENT;
  error.replica = member;
  error.sequence = caller.group.sequence(caller.me);
  copy_text(error.tag, caller.tag);
  std::snprintf(
      error.message, sizeof error.message,
      "replicas %d and %d gave overlapping buffers for tensor %zu: every replica needs memory of its own, "
      "or all of them one and the same out",
      std::min(peer, member), std::max(peer, member), t);
  copy_text(error.hint, "give each replica its own buffers");
  return error;
}

bool TensorList::overlaps_peers(const Caller& caller, int member, ErrorRecord* out_overlap) const noexcept {
  for (std::size_t t = 0; t < n_; ++t) {
    const std::size_t elements = elements_of(out_[t]);
    const std::size_t bytes = elements * dtype_size(out_[t].dtype);
    const std::size_t in_bytes = in_ != nullptr ? elements * dtype_size(in_[t].dtype) : bytes;
    if (bytes == 0) continue;
    const void* ours = peer_out(caller, member, n_, t);
    const bool one_for_all = mirrored(caller, n_, t);
    for (int p = 0; p < caller.group.size(); ++p) {
      if (p == member) continue;
      const void* theirs = peer_out(caller, p, n_, t);
      const void* given = peer_in(caller, p, n_, t);
      // Where an input and an output have one address all is well: who writes an element has read it before.
      const bool outputs = theirs == ours ? !one_for_all : overlap(theirs, bytes, ours, bytes);
      const bool input = (given != ours || in_bytes != bytes) && overlap(given, in_bytes, ours, bytes);
      if (!outputs && !input) continue;
      *out_overlap = overlap_report(caller, member, p, t);
      return true;
    }
  }
  return false;
}

}  // namespace dist
