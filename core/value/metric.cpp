// SPDX-License-Identifier: Apache-2.0
#include "core/value/metric.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/kernel/fp_environment.hpp"
#include "core/value/weighted_elements.hpp"

namespace dist {
namespace {

constexpr int64_t kSettleAfter = int64_t{1} << 20;  // elements; far below ExactSum's limit of 2^30

const char* kind_name(dist_metric_kind kind) noexcept {
  switch (kind) {
    case DIST_METRIC_SUM: return "sum";
    case DIST_METRIC_MEAN: return "mean";
    case DIST_METRIC_ACCURACY: return "accuracy";
    default: return nullptr;
  }
}

// Compares the elements of two tensors as numbers; 64-bit integers are compared exactly.
class Equal {
 public:
  Equal(dist_dtype a, dist_dtype b) noexcept
      : a_(a), b_(b), read_a_(read_element(a)), read_b_(read_element(b)) {
    integers_ = dtype_is_integer(a) && dtype_is_integer(b);
  }
  bool operator()(const std::byte* a, const std::byte* b) const noexcept {
    if (read_a_(a) != read_b_(b)) return false;
    return !integers_ || read_integer(a_, a) == read_integer(b_, b);
  }

 private:
  dist_dtype a_, b_;
  ReadElement read_a_, read_b_;
  bool integers_;
};

// The index of the largest score; of equal ones, the first. A NaN is never larger.
struct Scores {
  ReadElement read;
  int64_t count;
  int64_t stride;

  int64_t best(const std::byte* scores) const noexcept {
    int64_t best = -1;
    double most = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double score = read(scores + i * stride);
      if (best < 0 ? !std::isnan(score) : score > most) {
        best = i;
        most = score;
      }
    }
    return best < 0 ? 0 : best;
  }
};

Status check(const dist_tensor& tensor, const char* what) noexcept {
  TensorSize size;
  DIST_TRY(check_tensor(tensor, what, &size));
  if (tensor.dtype == DIST_COMPLEX64) {
    return invalid_argument(
        "%s are complex64, which a metric cannot add up. Pass their real parts or absolute values.", what);
  }
  return kOk;
}

// For ACCURACY: labels must have the shape of the predictions, or one dimension less than the scores.
Status check_labels(const dist_tensor& values, const dist_tensor& labels) noexcept {
  DIST_TRY(check(labels, "labels"));
  if (same_shape(values, labels)) return kOk;
  const bool scores = values.ndim == labels.ndim + 1 &&
                      same_shape({nullptr, DIST_F32, labels.ndim, values.shape, nullptr}, labels) &&
                      values.shape[labels.ndim] > 1;
  if (scores) return kOk;
  char given[160];
  char wanted[160];
  describe(values, given, sizeof given);
  describe(labels, wanted, sizeof wanted);
  return invalid_argument(
      "`values` are %s, but the labels are %s. Pass predictions with the labels' shape, or scores with one "
      "more dimension of 2 or more classes.",
      given, wanted);
}

}  // namespace

Status Metric::create(Memory& memory, int32_t num_replicas, dist_metric_kind kind, const char* name,
                      Ref<Metric>* out) {
  const char* const kind_text = kind_name(kind);
  if (kind_text == nullptr) return invalid_argument("`kind` is `%d`; use one of `DIST_METRIC_...`", kind);
  static_assert(std::is_trivially_copyable_v<Sums> && sizeof(Sums) % sizeof(int64_t) == 0);
  Sums nothing;
  const int64_t shape = sizeof nothing / sizeof(int64_t);
  const dist_tensor initial{&nothing, DIST_I64, 1, &shape, nullptr};
  // The state is mirrored, so that each replica has its own copy, also under central storage.
  const VariableHome home{DIST_STRATEGY_MIRRORED,
                          make_counted<ReplicaNumbers>(memory, ReplicaCount(num_replicas))};
  VariableOptions options;
  options.synchronization = DIST_SYNCHRONIZATION_ON_READ;
  options.aggregation = DIST_AGGREGATION_SUM;
  options.name = name != nullptr ? name : kind_text;
  Ref<Variable> state;
  DIST_TRY(Variable::create(memory, home, options, initial, &state));
  *out = make_counted<Metric>(memory, kind, std::move(state));
  return kOk;
}

Status Metric::check_owner(const Memory& strategy_memory) const noexcept {
  if (&strategy_memory == &memory()) return kOk;
  return invalid_argument("metric \"%s\" belongs to another strategy. Create one with this strategy.",
                          name());
}

Metric::Sums Metric::read(LocalReplica replica) const noexcept {
  Sums sums;
  std::memcpy(static_cast<void*>(&sums), state_->component(replica).data, sizeof sums);
  return sums;
}

void Metric::write(LocalReplica replica, const Sums& sums) noexcept {
  std::memcpy(state_->component(replica).data, static_cast<const void*>(&sums), sizeof sums);
}

Status Metric::update(LocalReplica replica, const dist_tensor& values, const dist_tensor* labels,
                      const dist_tensor* weights) noexcept {
  DIST_TRY(check(values, "values"));
  const bool accuracy = kind_ == DIST_METRIC_ACCURACY;
  if (accuracy != (labels != nullptr)) {
    return invalid_argument(
        "metric \"%s\" %s", name(),
        accuracy ? "is an accuracy metric. Pass labels to compare the values with."
                 : "takes no labels. Pass `NULL`, or create it with `DIST_METRIC_ACCURACY`."_m);
  }
  if (accuracy) DIST_TRY(check_labels(values, *labels));
  const dist_tensor& elements = accuracy ? *labels : values;

  static constexpr double kOne = 1;
  const dist_tensor one{const_cast<double*>(&kOne), DIST_F64, 0, nullptr, nullptr};
  if (weights == nullptr) weights = &one;
  DIST_TRY(check(*weights, "weights"));
  Walked weight_walk;
  DIST_TRY(
      stretch_weights(*weights, elements.ndim, elements.shape, accuracy ? "labels" : "values", &weight_walk));

  const FpEnvironment environment;
  const ReadElement read_weight = read_element(weights->dtype);
  Sums sums = read(replica);
  int64_t added = 0;
  const auto add = [&](double x, const std::byte* weight) {
    const double w = read_weight(weight);
    sums.total.add(w * x);
    sums.weight.add(w);
    if (++added % kSettleAfter == 0) {
      sums.total.settle();
      sums.weight.settle();
    }
  };
  const Walked value_walk = walked(values);
  const ReadElement read_value = read_element(values.dtype);
  if (!accuracy) {
    for_each_element<2>(values.ndim, values.shape, {&value_walk, &weight_walk},
                        [&](const auto& at) { add(read_value(at[0]), at[1]); });
  } else {
    const Walked label_walk = walked(*labels);
    const std::array<const Walked*, 3> walks{&value_walk, &label_walk, &weight_walk};
    if (values.ndim == labels->ndim) {
      const Equal equal(values.dtype, labels->dtype);
      for_each_element(labels->ndim, labels->shape, walks,
                       [&](const auto& at) { add(equal(at[0], at[1]) ? 1 : 0, at[2]); });
    } else {
      const auto classes = static_cast<std::size_t>(labels->ndim);
      const Scores scores{read_value, values.shape[classes], value_walk.strides[classes]};
      const ReadElement read_label = read_element(labels->dtype);
      for_each_element(labels->ndim, labels->shape, walks, [&](const auto& at) {
        add(read_label(at[1]) == static_cast<double>(scores.best(at[0])) ? 1 : 0, at[2]);
      });
    }
  }
  sums.total.settle();
  sums.weight.settle();
  write(replica, sums);
  return kOk;
}

double Metric::result() const noexcept {
  const FpEnvironment environment;
  Sums all = read(LocalReplica{0});
  for (int32_t r = 1; r < state_->num_replicas(); ++r) {
    const Sums own = read(LocalReplica{r});
    all.total.add(own.total);
    all.weight.add(own.weight);
  }
  return result_of(all);
}

double Metric::result_of(const dist_tensor& sums) const noexcept {
  const FpEnvironment environment;
  Sums all;
  std::memcpy(static_cast<void*>(&all), sums.data, sizeof all);
  return result_of(all);
}

double Metric::result_of(const Sums& all) const noexcept {
  const double total = all.total.value();
  if (kind_ == DIST_METRIC_SUM) return total;
  const double weight = all.weight.value();
  return weight == 0 ? 0 : total / weight;
}

void Metric::reset() noexcept {
  for (int32_t r = 0; r < state_->num_replicas(); ++r) write(LocalReplica{r}, Sums{});
}

}  // namespace dist
