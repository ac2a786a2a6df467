// SPDX-License-Identifier: Apache-2.0
// Checks on an element before it becomes part of a batch: how many examples it has, and whether replicas can
// receive it unchanged.
#include "core/input/batch.hpp"
#include "core/input/composite_rows.hpp"
#include "core/input/element_path.hpp"

namespace dist {
namespace {

class ExampleCounter {
 public:
  explicit ExampleCounter(int64_t index) noexcept : index_(static_cast<long long>(index)) {}

  Status visit(const Value& value) noexcept {
    switch (value.kind()) {
      case DIST_VALUE_NONE: return kOk;
      case DIST_VALUE_TENSOR: return visit_tensor(value.tensor());
      case DIST_VALUE_RAGGED:
      case DIST_VALUE_SPARSE: return count(composite_rows(value));
      case DIST_VALUE_LIST:
      case DIST_VALUE_TUPLE:
      case DIST_VALUE_DICT: break;
      default:
        return invalid_argument(
            "element %lld%s is %s, which cannot be split. An element that is a batch must be a tensor, or a "
            "list or dictionary of tensors.",
            index_, path_.text(), Value::kind_name(value.kind()));
    }
    for (std::size_t i = 0; i < value.items().size(); ++i) {
      const std::size_t here = path_.length();
      path_.enter(value, i);
      DIST_TRY(visit(*value.items()[i]));
      path_.cut(here);
    }
    return kOk;
  }

  // -1: the element contains no tensor.
  int64_t examples() const noexcept { return examples_; }

 private:
  Status visit_tensor(const dist_tensor& tensor) noexcept {
    if (tensor.ndim != 0) return count(tensor.shape[0]);
    return invalid_argument(
        "element %lld%s is a scalar, but an element that is a batch is split along its first dimension. Set "
        "`global_batch_size` to stack elements.",
        index_, path_.text());
  }

  Status count(int64_t rows) noexcept {
    if (examples_ >= 0 && rows != examples_) {
      return invalid_argument(
          "element %lld%s has %lld rows, but the tensors before it have %lld. All tensors of a batch must "
          "have the same first dimension.",
          index_, path_.text(), static_cast<long long>(rows), static_cast<long long>(examples_));
    }
    examples_ = rows;
    return kOk;
  }

  const long long index_;
  int64_t examples_ = -1;
  ElementPath path_;
};

}  // namespace

Status count_examples(const Value& element, int64_t index, int64_t* out) {
  ExampleCounter counter(index);
  DIST_TRY(counter.visit(element));
  if (counter.examples() < 0) {
    return invalid_argument("element %lld has no tensor, so it cannot be split as a batch",
                            static_cast<long long>(index));
  }
  *out = counter.examples();
  return kOk;
}

Status check_whole(const Value& element, int64_t index) noexcept {
  if (!element.holds_distributed()) return kOk;
  return invalid_argument(
      "element %lld %s, but an element must be a tensor, or a list or dictionary of tensors",
      static_cast<long long>(index),
      element.distributed() ? "is a per-replica or mirrored value" : "holds a per-replica or mirrored value");
}

}  // namespace dist
