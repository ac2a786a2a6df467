// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/step.hpp"

#include <sched.h>

#include <cstring>

namespace faults {
namespace {

constexpr int64_t kColumns = 3;

// Rows of the smallest tensor: a part of what all hold together, where that is cut or joined.
int64_t rows_of(Size size, int replicas) {
  switch (size) {
    case Size::kSmall: return 1;
    case Size::kList: return 40;
    case Size::kLarge: return (int64_t{1} << 20) / (4 * kColumns * replicas) + 1000;
  }
  return 0;
}

bool has_part_in(int32_t kind) {
  return kind == DIST_COLLECTIVE_ALL_GATHER || kind == DIST_COLLECTIVE_GATHER;
}
bool has_part_out(int32_t kind) {
  return kind == DIST_COLLECTIVE_REDUCE_SCATTER || kind == DIST_COLLECTIVE_SCATTER;
}

dist_status merge_here(dist_strategy*, dist_value*, dist_value**, void*) { return DIST_OK; }
dist_status merge_there(dist_strategy*, dist_value*, dist_value**, void*) {
  return dist_fail(DIST_INTERNAL, "the guilty replica's function ran");
}

void add_here(void* acc, const void* in, size_t count, dist_dtype, void*) {
  auto* sums = static_cast<float*>(acc);
  const auto* values = static_cast<const float*>(in);
  for (size_t i = 0; i < count; ++i) sums[i] += values[i];
}
void add_there(void* acc, const void* in, size_t count, dist_dtype dtype, void* user_data) {
  add_here(acc, in, count, dtype, user_data);
  static_cast<float*>(acc)[0] = -1;
}

}  // namespace

Step::Step(dist_replica* replica, const Recipe& recipe) : replica_(replica), recipe_(recipe) {
  tag_ = static_cast<char*>(take(recipe.tag.size() + 1));
  std::memcpy(tag_, recipe.tag.c_str(), recipe.tag.size() + 1);
  if (recipe.kind != DIST_COLLECTIVE_BARRIER && recipe.kind != DIST_COLLECTIVE_MERGE_CALL) make_lists();
}

Step::~Step() {
  // A thread that is being ended comes by here too.
  ruin(data_);
  ruin(descriptions_);
  dist_work_destroy(work_);
}

void* Step::take(std::size_t bytes) {
  descriptions_.push_back({std::make_unique<std::byte[]>(bytes), bytes});
  return descriptions_.back().memory.get();
}

void Step::make_lists() {
  const int replicas = dist_replica_num_replicas(replica_);
  const bool wrong_count = recipe_.wrong == Fault::kWrongCount;
  const int64_t columns = kColumns + (wrong_count ? 1 : 0);
  const int64_t part = rows_of(recipe_.size, replicas);
  n_ = recipe_.size == Size::kList ? 3 : 1;
  in_ = static_cast<dist_tensor*>(take(n_ * sizeof(dist_tensor)));
  out_ = static_cast<dist_tensor*>(take(n_ * sizeof(dist_tensor)));
  for (std::size_t t = 0; t < n_; ++t) {
    // In a list the last tensor alone is wrong.
    const bool last = t + 1 == n_;
    const auto tensor = [&](bool is_part) {
      auto* shape = static_cast<int64_t*>(take(2 * sizeof(int64_t)));
      shape[0] = is_part ? part : part * replicas;
      shape[1] = last ? columns : kColumns;
      const auto bytes = static_cast<std::size_t>(shape[0] * shape[1]) * sizeof(float);
      data_.push_back({std::unique_ptr<std::byte[]>(new std::byte[bytes]()), bytes});
      const dist_dtype dtype = recipe_.wrong == Fault::kWrongDtype && last ? DIST_I32 : DIST_F32;
      return dist_tensor{data_.back().memory.get(), dtype, 2, shape, nullptr};
    };
    in_[t] = tensor(has_part_in(recipe_.kind));
    out_[t] = tensor(has_part_out(recipe_.kind));
  }
}

void Step::ruin(std::vector<Block>& blocks) {
  for (Block& block : blocks) {
    volatile std::byte* bytes = block.memory.get();
    for (std::size_t i = 0; i < block.bytes; i += i < 64 ? 1 : 64) bytes[i] = std::byte{0xDD};
  }
  blocks.clear();
}

dist_status Step::call_on_tensors(const dist_collective_options& options) {
  const int replicas = dist_replica_num_replicas(replica_);
  const int me = dist_replica_id(replica_);
  const int32_t root = (replicas / 2 + (recipe_.wrong == Fault::kWrongRoot ? 1 : 0)) % replicas;
  const dist_reduce_op op = recipe_.own_operator               ? DIST_REDUCE_USER
                            : recipe_.wrong == Fault::kWrongOp ? DIST_REDUCE_MAX
                                                               : DIST_REDUCE_SUM;
  switch (recipe_.kind) {
    case DIST_COLLECTIVE_ALL_REDUCE: return dist_all_reduce(replica_, op, in_, out_, n_, &options);
    case DIST_COLLECTIVE_REDUCE: return dist_reduce_to_root(replica_, op, root, in_, out_, n_, &options);
    case DIST_COLLECTIVE_REDUCE_SCATTER: return dist_reduce_scatter(replica_, op, in_, out_, n_, &options);
    case DIST_COLLECTIVE_ALL_GATHER: return dist_all_gather(replica_, in_, out_, n_, &options);
    case DIST_COLLECTIVE_GATHER: return dist_gather_to_root(replica_, root, in_, out_, n_, &options);
    case DIST_COLLECTIVE_BROADCAST: return dist_broadcast(replica_, root, in_, out_, n_, &options);
    case DIST_COLLECTIVE_SCATTER: return dist_scatter_from_root(replica_, root, in_, out_, n_, &options);
    case DIST_COLLECTIVE_ALL_TO_ALL: return dist_all_to_all(replica_, in_, out_, n_, &options);
    case DIST_COLLECTIVE_SCAN: return dist_scan(replica_, op, DIST_SCAN_INCLUSIVE, in_, out_, n_, &options);
    default:
      return dist_permute(replica_, (me + 1) % replicas, (me + replicas - 1) % replicas, in_, out_, n_,
                          &options);
  }
}

dist_status Step::call() {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag_;
  options.group = recipe_.group;
  options.timeout_ns = recipe_.timeout_ns;
  if (recipe_.form != Form::kBlocking) options.out_work = &work_;
  options.planned = recipe_.form == Form::kPlanned;
  if (recipe_.own_operator && recipe_.kind != DIST_COLLECTIVE_MERGE_CALL) {
    options.reduce_fn = recipe_.wrong == Fault::kOtherFunction ? add_there : add_here;
  }
  dist_status status;
  if (recipe_.kind == DIST_COLLECTIVE_BARRIER) {
    status = dist_barrier(replica_, &options);
  } else if (recipe_.kind == DIST_COLLECTIVE_MERGE_CALL) {
    const dist_merge_fn fn = recipe_.wrong == Fault::kOtherFunction ? merge_there : merge_here;
    status = dist_merge_call(replica_, fn, nullptr, nullptr, &options, nullptr);
  } else {
    status = call_on_tensors(options);
  }
  // The library has copies, or has returned for good.
  ruin(descriptions_);
  if (status != DIST_OK || recipe_.form == Form::kBlocking) ruin(data_);
  return status;
}

dist_status Step::prepare() { return recipe_.form == Form::kPlanned ? call() : DIST_OK; }

dist_status Step::begin() {
  if (recipe_.form == Form::kBlocking) return DIST_OK;
  return recipe_.form == Form::kPlanned ? dist_work_start(work_) : call();
}

dist_status Step::end() {
  if (recipe_.form == Form::kBlocking) return call();
  dist_status status = DIST_OK;
  if (recipe_.form == Form::kPolled) {
    int32_t done = 0;
    while (status == DIST_OK && done == 0) {
      status = dist_work_test(work_, &done);
      sched_yield();
    }
  } else {
    status = dist_work_wait(work_, 0);
  }
  ruin(data_);
  return status;
}

}  // namespace faults
