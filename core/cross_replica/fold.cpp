// SPDX-License-Identifier: Apache-2.0
#include "core/cross_replica/fold.hpp"

#include <algorithm>

#include "core/base/on_stack.hpp"
#include "core/base/os/cpus.hpp"
#include "core/base/tensor.hpp"
#include "core/kernel/fp_environment.hpp"
#include "core/kernel/tree.hpp"

namespace dist {

Status check_reduction(dist_reduce_op op) noexcept {
  if (op == DIST_REDUCE_SUM || op == DIST_REDUCE_MEAN) return kOk;
  return invalid_argument(
      "`op` is %d (%s), but outside the replica function values can only be reduced by SUM or MEAN. Use a "
      "collective in the replica function for other operators.",
      op, op_name(op));
}

Status check_numerics_of(dist_numerics numerics, dist_dtype dtype) noexcept {
  if (numerics != DIST_NUMERICS_REPRODUCIBLE || dtype != DIST_COMPLEX64) return kOk;
  return fail(DIST_UNIMPLEMENTED,
              "the strategy has numerics REPRODUCIBLE, which does not support sums of complex64. Create it "
              "with ORDERED or TREE.");
}

void FoldPlan::add(dist_dtype dtype, dist_reduce_op op, double divisor, std::size_t count,
                   std::span<const std::byte* const> sources, void* to) {
  const std::size_t first = sources_.size();
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  add_from(first, dtype, op, divisor, count, to);
}

void FoldPlan::add_from(std::size_t first, dist_dtype dtype, dist_reduce_op op, double divisor,
                        std::size_t count, void* to) {
  if (count == 0) return;
  const std::size_t num_sources = sources_.size() - first;
  const std::size_t size = dtype_size(dtype);
  const std::size_t result_size = dtype_size(op == DIST_REDUCE_MEAN ? dtype_of_mean(dtype) : dtype);
  const std::size_t per_block = kBlockBytes / size;
  const bool tree = numerics_ == DIST_NUMERICS_TREE;
  // A single source is already the sum.
  const bool exact = numerics_ == DIST_NUMERICS_REPRODUCIBLE && num_sources > 1;
  folds_.push_back({tree ? tree_kernel(dtype, op, num_sources) : reduce_kernel(dtype, op),
                    exact ? exact_kernel(dtype) : nullptr, count, first, num_blocks_,
                    static_cast<uint32_t>(num_sources), static_cast<uint16_t>(size),
                    static_cast<uint16_t>(result_size), exact && op != DIST_REDUCE_MEAN ? 1 : divisor,
                    static_cast<std::byte*>(to)});
  num_blocks_ += (count + per_block - 1) / per_block;
  bytes_ += count * size * num_sources;
  result_bytes_ += count * result_size;
}

Status FoldPlan::add_of_workers(dist_reduce_op op, const dist_tensor& source, ValueRef* out) {
  return add_shared(shared_[1], op, {&source, 1}, out);
}

Status FoldPlan::add_shared(SharedFolds& folds, dist_reduce_op op, std::span<const dist_tensor> sources,
                            ValueRef* out) {
  dist_tensor result = sources[0];
  result.data = nullptr;
  result.strides = nullptr;
  if (op == DIST_REDUCE_MEAN) result.dtype = dtype_of_mean(result.dtype);
  ValueRef made;
  DIST_TRY(Value::copy_tensor(memory_, result, &made));
  folds.sources.insert(folds.sources.end(), sources.begin(), sources.end());
  folds.results.push_back(made->tensor());
  folds.contributions = sources.size();
  shared_op_ = op;
  keep(made);
  *out = std::move(made);
  return kOk;
}

// The sources are ordered as in the lists of a collective: contribution by contribution.
Status FoldPlan::run_shared() {
  for (SharedFolds& folds : shared_) {
    const std::size_t n = folds.results.size();
    if (n == 0) continue;
    std::pmr::vector<dist_tensor> lists(&memory_);
    lists.reserve(folds.sources.size());
    for (std::size_t k = 0; k < folds.contributions; ++k) {
      for (std::size_t t = 0; t < n; ++t) lists.push_back(folds.sources[t * folds.contributions + k]);
    }
    DIST_TRY(workers_->reduce(shared_op_, numerics_, lists, folds.results));
  }
  return kOk;
}

Status FoldPlan::add(dist_reduce_op op, std::span<const dist_tensor> sources, ValueRef* out) {
  if (workers_ != nullptr) return add_shared(shared_[0], op, sources, out);
  const std::size_t first = sources_.size();
  TensorSize size;
  for (dist_tensor source : sources) {
    DIST_TRY(check_tensor(source, "component", &size));
    if (!size.contiguous) {
      kept_.emplace_back();
      DIST_TRY(Value::copy_tensor(memory_, source, &kept_.back()));
      source = kept_.back()->tensor();
    }
    sources_.push_back(static_cast<const std::byte*>(source.data));
  }
  dist_tensor result = sources[0];
  result.data = nullptr;
  result.strides = nullptr;
  if (op == DIST_REDUCE_MEAN) result.dtype = dtype_of_mean(result.dtype);
  ValueRef made;
  DIST_TRY(Value::copy_tensor(memory_, result, &made));
  add_from(first, sources[0].dtype, op, static_cast<double>(sources.size()),
           static_cast<std::size_t>(size.elements), made->tensor().data);
  *out = std::move(made);
  return kOk;
}

void FoldPlan::run_block(const Fold& fold, std::size_t block, bool stream) const noexcept {
  const std::size_t per_block = kBlockBytes / fold.element_bytes;
  const std::size_t first = (block - fold.first_block) * per_block;
  const std::size_t count = std::min(per_block, fold.count - first);
  auto* const sources = DIST_ON_STACK(const std::byte*, fold.num_sources);
  for (std::size_t i = 0; i < fold.num_sources; ++i) {
    sources[i] = sources_[fold.first_source + i] + first * fold.element_bytes;
  }
  std::byte* const to[] = {fold.to + first * fold.result_bytes};
  if (fold.exact != nullptr) {
    return fold.exact({sources, to, fold.num_sources, 1, count, nullptr, fold.divisor, stream});
  }
  fold.kernel({sources, to, fold.num_sources, 1, count, fold.divisor, stream});
}

Status FoldPlan::run(Arena& arena) {
  if (workers_ != nullptr) DIST_TRY(run_shared());
  // If the results do not fit in the cache anyway, they are stored past it, so that their old contents need
  // not be read first.
  const bool stream = result_bytes_ > last_level_cache_bytes() / 2;
  const auto blocks = [this, stream](int64_t first, int64_t last) {
    const FpEnvironment environment;
    auto next =
        std::upper_bound(folds_.begin(), folds_.end(), static_cast<std::size_t>(first),
                         [](std::size_t block, const Fold& fold) { return block < fold.first_block; });
    for (auto block = static_cast<std::size_t>(first); block < static_cast<std::size_t>(last); ++block) {
      if (next != folds_.end() && next->first_block == block) ++next;
      run_block(*(next - 1), block, stream);
    }
  };
  const auto count = static_cast<int64_t>(num_blocks_);
  if (bytes_ > kSerialBytes) return arena.parallel_for(0, count, 1, blocks);
  blocks(0, count);
  return kOk;
}

}  // namespace dist
