// SPDX-License-Identifier: Apache-2.0
#include "core/value/average_loss.hpp"

#include <cstring>

#include "core/kernel/fp_environment.hpp"
#include "core/kernel/narrow.hpp"
#include "core/value/exact_sum.hpp"
#include "core/value/weighted_elements.hpp"

namespace dist {
namespace {

constexpr int64_t kSettleAfter = int64_t{1} << 20;

Status check_loss(const dist_tensor& loss, const char* what) noexcept {
  TensorSize size;
  DIST_TRY(check_tensor(loss, what, &size));
  if (dtype_is_floating(loss.dtype) && loss.dtype != DIST_COMPLEX64) return kOk;
  return invalid_argument("%s is %s, but a loss must be f16, bf16, f32 or f64", what, dtype_name(loss.dtype));
}

Status check_out(const dist_tensor& loss, const dist_tensor& out) noexcept {
  TensorSize size;
  DIST_TRY(check_output(out, "out", &size));
  if (out.ndim == 0 && out.dtype == loss.dtype) return kOk;
  char given[160];
  describe(out, given, sizeof given);
  return invalid_argument("`out` is %s, but the loss is one number. Pass a scalar %s.", given,
                          dtype_name(loss.dtype));
}

Status check_inside(int32_t num_replicas, const char* call) noexcept {
  if (num_replicas != kOutsideReplicas) return kOk;
  return failed_precondition(
      "`%s()`: `replica` is `NULL`, as in the cross-replica context. Call it inside the replica function, "
      "and pass its replica.",
      call);
}

// The sum of weights * loss. If `read_weight` is NULL, all weights are 1.
double weighted_sum(const dist_tensor& loss, ReadElement read_weight, const Walked& weights) noexcept {
  const ReadElement read = read_element(loss.dtype);
  const Walked values = walked(loss);
  ExactSum sum;
  int64_t added = 0;
  for_each_element<2>(loss.ndim, loss.shape, {&values, &weights}, [&](const auto& at) {
    sum.add(read_weight != nullptr ? read_weight(at[1]) * read(at[0]) : read(at[0]));
    if (++added % kSettleAfter == 0) sum.settle();
  });
  return sum.value();
}

void write(double value, const dist_tensor& out) noexcept {
  const auto store = [&](auto element) { std::memcpy(out.data, &element, sizeof element); };
  switch (out.dtype) {
    case DIST_F16: return store(f16_from_f64(value));
    case DIST_BF16: return store(bf16_from_f64(value));
    case DIST_F32: return store(static_cast<float>(value));
    default: return store(value);
  }
}

}  // namespace

Status average_loss(int32_t num_replicas, const dist_tensor& loss, const dist_tensor* weights,
                    int64_t global_batch_size, const dist_tensor& out) noexcept {
  if (global_batch_size == 0) DIST_TRY(check_inside(num_replicas, "dist_average_loss"));
  DIST_TRY(check_loss(loss, "per_example_loss"));
  if (loss.ndim == 0) {
    return invalid_argument(
        "`per_example_loss` is a scalar. Pass one loss for each example, as a tensor of one dimension or "
        "more.");
  }
  if (global_batch_size < 0) {
    return invalid_argument(
        "`global_batch_size` is %lld, but must be the number of examples of all replicas together, or 0",
        static_cast<long long>(global_batch_size));
  }
  DIST_TRY(check_out(loss, out));
  Walked weight_walk;
  if (weights != nullptr) {
    TensorSize size;
    DIST_TRY(check_tensor(*weights, "sample_weight", &size));
    if (weights->dtype == DIST_COMPLEX64) {
      return invalid_argument("`sample_weight` is complex64, but weights must be real numbers");
    }
    DIST_TRY(stretch_weights(*weights, loss.ndim, loss.shape, "a loss", &weight_walk));
  }
  const FpEnvironment environment;
  const double sum =
      weighted_sum(loss, weights != nullptr ? read_element(weights->dtype) : nullptr, weight_walk);
  const double examples = global_batch_size != 0
                              ? static_cast<double>(global_batch_size)
                              : static_cast<double>(loss.shape[0]) * static_cast<double>(num_replicas);
  write(examples == 0 ? 0 : sum / examples, out);
  return kOk;
}

Status scale_regularization_loss(int32_t num_replicas, const dist_tensor& loss,
                                 const dist_tensor& out) noexcept {
  DIST_TRY(check_inside(num_replicas, "dist_scale_regularization_loss"));
  DIST_TRY(check_loss(loss, "loss"));
  DIST_TRY(check_out(loss, out));
  const FpEnvironment environment;
  write(weighted_sum(loss, nullptr, Walked{}) / num_replicas, out);
  return kOk;
}

}  // namespace dist
