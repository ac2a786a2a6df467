// SPDX-License-Identifier: Apache-2.0
#include "core/collective/call.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/host_call.hpp"

namespace dist {
namespace {

// "in" for a single tensor, "in[7]" in a list.
void label(char (&text)[32], const char* name, std::size_t n, std::size_t t) noexcept {
  if (n == 1) {
    std::snprintf(text, sizeof text, "%s", name);
  } else {
    std::snprintf(text, sizeof text, "%s[%zu]", name, t);
  }
}

using Check = Status (*)(const dist_tensor& tensor, const char* what, TensorSize* out);

// Calls check_tensor() or check_output(). The label is only built if the check fails.
Status check_view(Check check, const dist_tensor& tensor, const char* name, std::size_t n, std::size_t t,
                  TensorSize* size) noexcept {
  if (check(tensor, name, size).ok()) return kOk;
  char what[32];
  label(what, name, n, t);
  return check(tensor, what, size);
}

// Whether two tensors with the same shape and address have all elements at the same addresses.
bool same_view(const dist_tensor& a, const TensorSize& a_size, const dist_tensor& b,
               const TensorSize& b_size) noexcept {
  if (a_size.contiguous || b_size.contiguous) return a_size.contiguous && b_size.contiguous;
  return std::equal(a.strides, a.strides + a.ndim, b.strides);
}

// Whether one tensor can be a part of the other: their strides are equal in every dimension.
bool steps_alike(const dist_tensor& a, const dist_tensor& b) noexcept {
  int64_t made[2][DIST_MAX_NDIM];
  const int64_t* const first = strides_of(a, made[0]);
  const int64_t* const second = strides_of(b, made[1]);
  for (int32_t i = 0; i < a.ndim; ++i) {
    if (a.shape[i] > 1 && b.shape[i] > 1 && first[i] != second[i]) return false;
  }
  return true;
}

// The digest of one tensor; a signature's digest contains the sum of all of them. The digests of several
// tensors do not depend on each other, so a CPU can compute them at the same time. `free_axis`: the dimension
// whose size may differ between members; -1: none.
class TensorDigest {
 public:
  TensorDigest(std::size_t t, dist_dtype dtype, int32_t ndim, int32_t free_axis) noexcept
      : value_(mix(mix(static_cast<uint64_t>(t) << 32 | static_cast<uint32_t>(free_axis), kSeed),
                   static_cast<uint32_t>(dtype) | static_cast<uint64_t>(ndim) << 32)) {}
  void add(int64_t size) noexcept { value_ = mix(value_, static_cast<uint64_t>(size)); }
  uint64_t value() const noexcept { return value_; }

 private:
  static constexpr uint64_t kSeed = 0xD6E8FEB86659FD93u;
  uint64_t value_;
};

Status shapes_differ(const dist_tensor& in, const dist_tensor& out, std::size_t t,
                     const char* rule) noexcept {
  char in_text[96];
  char out_text[96];
  describe(in, in_text, sizeof in_text);
  describe(out, out_text, sizeof out_text);
  return invalid_argument("tensor %zu: `in` is %s and out %s; %s", t, in_text, out_text, rule);
}

}  // namespace

Status Call::check_op_of(std::size_t t) const noexcept {
  const dist_dtype dtype = in[t].dtype;
  if (op == DIST_REDUCE_USER) {
    if (user_op == nullptr)
      return invalid_argument("op is `DIST_REDUCE_USER`, but `options->reduce_fn` is `NULL`");
  } else {
    DIST_TRY(check_op(op, dtype));
  }
  if (traits().prefixes && op == DIST_REDUCE_MEAN) {
    return invalid_argument("op is MEAN, which `dist_scan()` does not support. Use SUM and divide.");
  }
  if (numerics != DIST_NUMERICS_REPRODUCIBLE) return kOk;
  const bool sums = op == DIST_REDUCE_SUM || op == DIST_REDUCE_MEAN;
  const bool real = dtype == DIST_F16 || dtype == DIST_BF16 || dtype == DIST_F32 || dtype == DIST_F64;
  // Integers, MIN and MAX are exact in any numerics. A host operator is not, nor are weighted integers, which
  // are summed as floating-point numbers.
  const bool exact = dtype_is_integer(dtype) || op == DIST_REDUCE_MIN || op == DIST_REDUCE_MAX;
  if (exact && op != DIST_REDUCE_USER && weights == nullptr) return kOk;
  if (sums && real && !traits().prefixes) return kOk;
  return fail(DIST_UNIMPLEMENTED,
              "numerics REPRODUCIBLE does not support %s %s %s, only SUM and MEAN of f16, bf16, f32 and f64. "
              "Use ORDERED or TREE.",
              collective_name(collective), op_name(op), dtype_name(dtype));
}

// Checks that elements of a host operator are not cut, neither at the end of a tensor nor between parts.
Status Call::check_elements_of(std::size_t t) const noexcept {
  const std::size_t of_dtype = dtype_size((in != nullptr ? in[t] : out[t]).dtype);
  if (element_bytes % of_dtype != 0) {
    return invalid_argument(
        "`reduce_element_bytes` is %zu, and tensor %zu is %s, but it must be a multiple of %zu",
        element_bytes, t, dtype_name((in != nullptr ? in[t] : out[t]).dtype), of_dtype);
  }
  const auto check_one = [&](const dist_tensor& tensor, const char* name) -> Status {
    const std::size_t run =
        of_dtype * contiguous_tail(tensor.shape, tensor.strides, tensor.ndim, cuts() ? axis_of(t) : 0);
    if (run % element_bytes == 0) return kOk;
    return invalid_argument(
        "tensor %zu: `reduce_element_bytes` is %zu, but %s has runs of %zu bytes without a gap. Each run "
        "must contain whole elements.",
        t, element_bytes, name, run);
  };
  for (std::size_t j = 0; in != nullptr && j < lists(); ++j) DIST_TRY(check_one(in[j * n + t], "in"));
  return out != nullptr ? check_one(out[t], "out") : kOk;
}

Status Call::check_options(int me, int size) noexcept {
  DIST_TRY(check_numerics(numerics));
  if (contributions > most_contributions(size)) {
    return invalid_argument("`contributions` is %lld, but must be 0 to %zu",
                            static_cast<long long>(contributions), most_contributions(size));
  }
  if (traits().prefixes && contributions > 1) {
    return invalid_argument("`contributions` is %zu, but a scan takes one tensor from each replica",
                            contributions);
  }
  if (traits().prefixes && kind != DIST_SCAN_INCLUSIVE && kind != DIST_SCAN_EXCLUSIVE) {
    return invalid_argument("`kind` is `%d`: use `DIST_SCAN_INCLUSIVE` or `DIST_SCAN_EXCLUSIVE`", kind);
  }
  if (weights != nullptr) {
    if (op != DIST_REDUCE_MEAN)
      return invalid_argument("weights are set, but `op` is %s. Only MEAN uses weights.", op_name(op));
    for (std::size_t j = 0; j < lists(); ++j) {
      if (!(weights[j] >= 0) || std::isinf(weights[j])) {
        return invalid_argument("`weights[%zu]` is %g, but must be finite and 0 or more", j, weights[j]);
      }
    }
  }
  if (element_bytes > kMostElementBytes) {
    return invalid_argument("`reduce_element_bytes` is %lld, but must be 0 to %zu",
                            static_cast<long long>(element_bytes), kMostElementBytes);
  }
  if (rooted() && (root < 0 || root >= size)) {
    return invalid_argument("`root` is %d, but must be a rank of this group, 0 to %d", root, size - 1);
  }
  if (traits().pairs()) {
    for (const int32_t rank : {destination, source}) {
      if (rank < -1 || rank >= size) {
        return invalid_argument("`%s` is %d, but must be a rank from 0 to %d, or -1 for none",
                                rank == destination ? "destination" : "source", rank, size - 1);
      }
    }
  }
  if (n == 0) return kOk;
  if (n > most_of<dist_tensor>() / lists()) {
    return invalid_argument("`n` is %zu, which is more tensors than memory can hold", n);
  }
  if (gives(me) && in == nullptr) {
    return invalid_argument(traits().sources == Ends::kRoot ? "`in` is `NULL` on the root, but `n` is %zu"
                                                            : "`in` is `NULL`, but `n` is %zu",
                            n);
  }
  if (gets(me) && out == nullptr) return invalid_argument("`out` is `NULL`, but `n` is %zu", n);
  if (!gives(me)) in = nullptr;
  if (!gets(me)) out = nullptr;
  return kOk;
}

Status Call::check_input(std::size_t t, TensorSize* size) noexcept {
  DIST_TRY(check_view(check_tensor, in[t], "in", n * lists(), t, size));
  strided = strided || !size->contiguous;
  for (std::size_t j = 1; j < lists(); ++j) {
    const dist_tensor& more = in[j * n + t];
    TensorSize more_size;
    DIST_TRY(check_view(check_tensor, more, "in", n * lists(), j * n + t, &more_size));
    strided = strided || !more_size.contiguous;
    if (more.dtype != in[t].dtype || !same_shape(more, in[t])) {
      return invalid_argument(
          "in[%zu] and in[%zu] are contributions to the same sum, so they must have the same dtype and shape",
          t, j * n + t);
    }
  }
  return kOk;
}

Status Call::check_output(std::size_t t, bool given, TensorSize* size) noexcept {
  DIST_TRY(check_view(dist::check_output, out[t], "out", n, t, size));
  strided = strided || !size->contiguous;
  if (!given) return kOk;
  const dist_dtype wanted = out_dtype(in[t].dtype);
  if (out[t].dtype == wanted) return kOk;
  return invalid_argument("tensor %zu: `out` is %s; `in` is %s, so out must be %s", t,
                          dtype_name(out[t].dtype), dtype_name(in[t].dtype), dtype_name(wanted));
}

// Validates the shapes of one tensor, as far as this is possible without the peers' shapes.
Status Call::check_shapes(std::size_t t, int size) const noexcept {
  if (!joins() && !cuts()) {
    if (in == nullptr || out == nullptr || same_shape(in[t], out[t])) return kOk;
    return shapes_differ(in[t], out[t], t, "their shapes must be equal");
  }
  const dist_tensor& any = in != nullptr ? in[t] : out[t];
  if (any.ndim == 0) {
    return invalid_argument("tensor %zu is a scalar, but %s needs a dimension to split or join along", t,
                            collective_name(collective));
  }
  const int32_t along = axis_of(t);
  if (along < 0 || along >= any.ndim) {
    return invalid_argument("`axis` is %d, but tensor %zu has %d dimensions. The axis must be %d to %d.",
                            axis, t, any.ndim, -any.ndim, any.ndim - 1);
  }
  if (in != nullptr && out != nullptr) {
    bool fit = in[t].ndim == out[t].ndim;
    for (int32_t i = 0; fit && i < in[t].ndim; ++i) fit = i == along || in[t].shape[i] == out[t].shape[i];
    if (!fit) return shapes_differ(in[t], out[t], t, "they may differ along the axis only");
  }
  if (!traits().swaps()) return kOk;
  const int64_t whole = in[t].shape[along];
  if (splits == nullptr) {
    if (whole % size == 0) return kOk;
    return invalid_argument(
        "tensor %zu: its size along the axis, %lld, is not a multiple of the %d replicas. Pass "
        "`options->splits` to split it unevenly.",
        t, static_cast<long long>(whole), size);
  }
  int64_t left = whole;
  for (int r = 0; r < size; ++r) {
    if (splits[r] < 0 || splits[r] > left) left = -1;
    if (left < 0) break;
    left -= splits[r];
  }
  if (left == 0) return kOk;
  return invalid_argument("tensor %zu: the %d splits must be 0 or more and add up to %lld", t, size,
                          static_cast<long long>(whole));
}

// Checks that this member's inputs and output of one tensor are either the same memory or disjoint.
Status Call::check_overlap(std::size_t t, const TensorSize& in_size, const TensorSize& out_size) noexcept {
  const bool whole = traits().whole();
  for (std::size_t j = 1; j < lists(); ++j) {
    const dist_tensor& more = in[j * n + t];
    if (in_size.bytes == 0 || out_size.bytes == 0 || !may_share_memory(more, out[t])) continue;
    if (more.data == out[t].data && same_view(more, in_size, out[t], out_size) &&
        in_size.bytes == out_size.bytes) {
      continue;
    }
    return invalid_argument(
        "in[%zu] and out[%zu] overlap partially. Use the same buffer for both, or separate buffers.",
        j * n + t, t);
  }
  if (whole && in[t].data == out[t].data && in_size.bytes != 0) {
    if (!same_view(in[t], in_size, out[t], out_size)) {
      return invalid_argument(
          "tensor %zu: in and out start at the same address but have different strides. Use equal strides or "
          "separate buffers.",
          t);
    }
    if (in_size.bytes == out_size.bytes) return kOk;
    return invalid_argument(
        "tensor %zu: in and out share a buffer, but the result of %s is %s. Use a separate buffer for out.",
        t, dtype_name(in[t].dtype), dtype_name(out[t].dtype));
  }
  in_place = false;
  const bool dense = in_size.contiguous && out_size.contiguous;
  if (dense && !overlap(in[t].data, in_size.bytes, out[t].data, out_size.bytes)) return kOk;
  if (in_size.bytes == 0 || out_size.bytes == 0 || !may_share_memory(in[t], out[t])) return kOk;
  // A part may be at its own place in the whole. This is checked when the sizes of all members are known.
  if (traits().may_lie_inside() && (dense || steps_alike(in[t], out[t]))) return kOk;
  return invalid_argument(
      whole ? "tensor %zu: in and out overlap partially. Use the same buffer for both, or separate buffers."
            : "tensor %zu: in and out overlap. Use separate buffers.",
      t);
}

Status Call::check(int me, int size, Signature& signature) noexcept {
  if (check_arguments(me, size).ok()) {
    if (check_dense(signature)) return kOk;
    if (check_tensors(size).ok()) {
      state(signature);
      return kOk;
    }
  }
  return reworded("%s: %s", collective_name(collective), last_error().message);
}

Status Call::check_arguments(int me, int size) noexcept {
  DIST_TRY(check_options(me, size));
  if (n == 0 && reduces() && op != DIST_REDUCE_USER) DIST_TRY(check_op(op, DIST_F32));
  return kOk;
}

Status Call::check_tensors(int size) noexcept {
  in_place = in != nullptr && out != nullptr;
  std::size_t in_bytes = 0;
  std::size_t out_bytes = 0;
  for (std::size_t t = 0; t < n; ++t) {
    TensorSize in_size;
    TensorSize out_size;
    if (in != nullptr) {
      if (reduces()) DIST_TRY(check_op_of(t));
      DIST_TRY(check_input(t, &in_size));
    }
    if (out != nullptr) DIST_TRY(check_output(t, in != nullptr, &out_size));
    DIST_TRY(check_shapes(t, size));
    if (element_bytes != 0) DIST_TRY(check_elements_of(t));
    if (in != nullptr && out != nullptr) DIST_TRY(check_overlap(t, in_size, out_size));
    in_bytes += in_size.bytes;
    out_bytes += out_size.bytes;
  }
  bytes = in != nullptr ? in_bytes : out_bytes;
  return kOk;
}

// Validates the usual kind of call, in which nonempty dense tensors are exchanged as a whole, and fills in
// the signature, all in one pass: a list of small tensors would take longer to validate than to exchange.
// Returns false if the call is of another kind or not valid; then check_tensors() must decide.
bool Call::check_dense(Signature& signature) noexcept {
  if (n == 0 || in == nullptr || out == nullptr || !traits().whole() || !plain() || element_bytes != 0 ||
      op == DIST_REDUCE_USER || states != nullptr) {
    return false;
  }
  std::size_t all_bytes = 0;
  int64_t all_elements = 0;
  uint64_t digest = 0;
  bool same = true;  // every output is its input
  dist_dtype dtype{};
  dist_dtype result{};
  std::size_t in_size = 0;
  std::size_t out_size = 0;
  for (std::size_t t = 0; t < n; ++t) {
    const dist_tensor& a = in[t];
    const dist_tensor& b = out[t];
    if (in_size == 0 || a.dtype != dtype) [[unlikely]] {
      in_size = dtype_size(a.dtype);
      if (in_size == 0 || (reduces() && !check_op_of(t).ok())) return false;
      dtype = a.dtype;
      result = out_dtype(dtype);
      out_size = dtype_size(result);
    }
    if (b.dtype != result || a.strides != nullptr || b.strides != nullptr || a.ndim != b.ndim ||
        static_cast<uint32_t>(a.ndim) > DIST_MAX_NDIM || a.data == nullptr || b.data == nullptr) {
      return false;
    }
    if (a.ndim != 0 && (a.shape == nullptr || b.shape == nullptr)) return false;
    TensorDigest shape(t, dtype, a.ndim, -1);
    // Limits the sizes so that no sum below can overflow.
    constexpr int64_t kMostElements = int64_t{1} << 48;
    int64_t elements = 1;
    for (int32_t i = 0; i < a.ndim; ++i) {
      const int64_t size = a.shape[i];
      if (size != b.shape[i] || size <= 0 || __builtin_mul_overflow(elements, size, &elements)) return false;
      shape.add(size);
    }
    if (elements > kMostElements) return false;
    digest += shape.value();
    const std::size_t a_bytes = static_cast<std::size_t>(elements) * in_size;
    const std::size_t b_bytes = static_cast<std::size_t>(elements) * out_size;
    const auto at = reinterpret_cast<uintptr_t>(a.data);
    const auto to = reinterpret_cast<uintptr_t>(b.data);
    if (at + a_bytes < at || to + b_bytes < to) return false;
    if (at == to) {
      if (a_bytes != b_bytes) return false;
    } else {
      same = false;
      if (at < to + b_bytes && to < at + a_bytes) return false;
    }
    all_bytes += a_bytes;
    all_elements += elements;
    if (all_elements > kMostElements) return false;
  }
  bytes = all_bytes;
  in_place = same;
  state_tensors(signature, digest, all_elements);
  return true;
}

void Call::state(Signature& signature) const noexcept {
  int64_t elements = 0;
  uint64_t digest = 0;
  // Sizes along the axis may differ between members, except in a reduce_scatter.
  const bool parts = joins() || cuts();
  const bool reduce_scatter = cuts() && reduces();
  for (std::size_t t = 0; t < n; ++t) {
    // Members without an input (broadcast, scatter) use their output, which is like the root's input.
    const dist_tensor& tensor = in != nullptr ? in[t] : out[t];
    const int32_t free_axis = parts ? axis_of(t) : -1;
    TensorDigest shape(t, tensor.dtype, tensor.ndim, free_axis);
    for (int32_t i = 0; i < tensor.ndim; ++i) {
      if (i != free_axis || reduce_scatter) shape.add(tensor.shape[i]);
    }
    digest += shape.value();
    elements += static_cast<int64_t>(elements_of(tensor));
  }
  state_tensors(signature, digest, elements);
}

// Fills in the signature. `digest`: the sum of the tensors' digests.
void Call::state_tensors(Signature& signature, uint64_t digest, int64_t elements) const noexcept {
  signature.collective = collective;
  signature.op = op;
  signature.root = root;
  signature.kind = kind;
  signature.numerics = static_cast<int8_t>(numerics - DIST_NUMERICS_DEFAULT);
  signature.function = reinterpret_cast<const void*>(op == DIST_REDUCE_USER ? user_op : nullptr);
  signature.element_bytes = static_cast<int32_t>(element_bytes);
  signature.tensors = static_cast<int64_t>(n);
  // Either all members specify a number of contributions, or none does. The same holds for weights.
  signature.contributes = contributions != 0;
  signature.weighted = weights != nullptr;
  if (n > 0) {
    const dist_tensor& first = in != nullptr ? in[0] : out[0];
    signature.dtype = first.dtype;
    if (joins() || cuts()) signature.axis = axis_of(0);
    signature.ndim = first.ndim;
    for (int32_t i = 0; i < first.ndim && i < Signature::kDims; ++i) signature.shape[i] = first.shape[i];
  }
  signature.elements = elements;
  digest = mix(mix(mix(signature.digest, salt), element_bytes), digest);
  signature.digest = mix(digest, (signature.contributes ? 1u : 0u) | (signature.weighted ? 2u : 0u));
}

void Call::fold_in(void* acc, const void* contribution, int64_t count, dist_dtype of) const noexcept {
  const HostCall inside("a reduction operator", HostCall::Refuses::kCalls);
  if (guarded_void("the reduction operator", [&] { user_op(acc, contribution, count, of, user_data); }))
    return;
  if (group != nullptr) group->condemn(last_error());
}

void Call::describe_in(CallDescriptor& descriptor) const noexcept {
  const bool parts = n != 0 && (joins() || cuts());
  const int32_t along = parts ? axis_of(0) : 0;
  const int64_t in_size = parts && in != nullptr ? in[0].shape[along] : 0;
  const int64_t out_size = parts && out != nullptr ? out[0].shape[along] : 0;
  descriptor.set_tail({in, out, states, weights, offsets, lists()});
  descriptor.set_head({n == 0 || in == nullptr ? nullptr : static_cast<const std::byte*>(in[0].data),
                       n == 0 || out == nullptr ? nullptr : static_cast<std::byte*>(out[0].data), strided},
                      joins() ? in_size : out_size, joins() ? out_size : in_size);
  if (traits().pairs()) descriptor.set_pair(destination, source);
}

void describe_one_in(CallDescriptor& descriptor, const dist_tensor& in, const dist_tensor& out) noexcept {
  descriptor.set_tail({&in, &out, nullptr, nullptr, nullptr, 1});
  descriptor.in_data = static_cast<const std::byte*>(in.data);
  descriptor.out_data = static_cast<std::byte*>(out.data);
  descriptor.strided = false;
}

void Call::offset_splits(int64_t* room, int size) noexcept {
  room[0] = 0;
  for (int r = 0; r < size; ++r) room[r + 1] = room[r] + splits[r];
  offsets = room;
}

}  // namespace dist
