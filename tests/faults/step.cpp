// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/step.hpp"

#include <sched.h>

#include <cstring>

namespace faults {
namespace {

constexpr int64_t kColumns = 3;

// Returns the rows of the smallest tensor. If the tensor is divided or joined, this is one part of the whole.
int64_t rows_of(Size size, int parts) {
  switch (size) {
    case Size::kSmall: return 1;
    case Size::kList: return 40;
    case Size::kLarge: return (int64_t{1} << 20) / (4 * kColumns * parts) + 1000;
  }
  return 0;
}

dist_status merge_here(dist_strategy*, dist_value*, dist_value*, dist_value**, void*) { return DIST_OK; }
dist_status merge_there(dist_strategy*, dist_value*, dist_value*, dist_value**, void*) {
  return dist_fail(DIST_INTERNAL, "the guilty replica's function ran");
}

void add_here(void* acc, const void* in, int64_t count, dist_dtype, void*) {
  auto* sums = static_cast<float*>(acc);
  const auto* values = static_cast<const float*>(in);
  for (int64_t i = 0; i < count; ++i) sums[i] += values[i];
}
void add_there(void* acc, const void* in, int64_t count, dist_dtype dtype, void* user_data) {
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
  // Also reached when a thread is being ended.
  ruin(data_);
  ruin(descriptions_);
  dist_work_destroy(work_);
}

void* Step::take(std::size_t bytes) {
  descriptions_.push_back({std::make_unique<std::byte[]>(bytes), bytes});
  return descriptions_.back().memory.get();
}

template <class T>
T* Step::take_pair(T first, T second) {
  auto* pair = static_cast<T*>(take(2 * sizeof(T)));
  pair[0] = first, pair[1] = second;
  return pair;
}

// Returns the shape of the member's inputs (`gives`) or outputs.
std::array<int64_t, 2> Step::shape_of(bool gives, int64_t columns) const {
  const int members = dist_replica_num_replicas(replica_);
  const int64_t part = rows_of(recipe_.size, members);
  const int64_t whole = part * members;
  switch (recipe_.kind) {
    case DIST_COLLECTIVE_ALL_GATHER:
    case DIST_COLLECTIVE_GATHER: return {gives ? part : whole, columns};
    case DIST_COLLECTIVE_REDUCE_SCATTER:
    case DIST_COLLECTIVE_SCATTER: return {gives ? whole : part, columns};
    case DIST_COLLECTIVE_HALO_EXCHANGE: return {part + (gives ? 0 : 2), columns + (gives ? 0 : 2)};
    case DIST_COLLECTIVE_RESHARD: {
      // Rows become columns.
      const int64_t few = rows_of(recipe_.size, members * members);
      if (gives || recipe_.wrong == Fault::kOtherSplit) return {few, columns * members};
      return {few * members, columns};
    }
    default: return {whole, columns};
  }
}

void Step::make_lists() {
  const bool wrong_count = recipe_.wrong == Fault::kWrongCount;
  n_ = recipe_.size == Size::kList ? 3 : 1;
  in_ = static_cast<dist_tensor*>(take(n_ * sizeof(dist_tensor)));
  out_ = static_cast<dist_tensor*>(take(n_ * sizeof(dist_tensor)));
  for (std::size_t t = 0; t < n_; ++t) {
    // In a list, only the last tensor is wrong.
    const bool last = t + 1 == n_;
    const auto tensor = [&](bool gives) {
      const auto sizes = shape_of(gives, kColumns + (wrong_count && last ? 1 : 0));
      const int64_t* shape = take_pair(sizes[0], sizes[1]);
      const auto bytes = static_cast<std::size_t>(shape[0] * shape[1]) * sizeof(float);
      data_.push_back({std::unique_ptr<std::byte[]>(new std::byte[bytes]()), bytes});
      const dist_dtype dtype = recipe_.wrong == Fault::kWrongDtype && last ? DIST_I32 : DIST_F32;
      if (recipe_.flat) shape = take_pair<int64_t>(shape[0] * shape[1], 0);
      return dist_tensor{data_.back().memory.get(), dtype, recipe_.flat ? 1 : 2, shape, nullptr};
    };
    in_[t] = tensor(true);
    out_[t] = tensor(false);
  }
}

void Step::ruin(std::vector<Block>& blocks) {
  for (Block& block : blocks) {
    volatile std::byte* bytes = block.memory.get();
    for (std::size_t i = 0; i < block.bytes; i += i < 64 ? 1 : 64) bytes[i] = std::byte{0xDD};
  }
  blocks.clear();
}

// Tiles below each other, with one element around each. The wrong call has them side by side.
dist_status Step::exchange_halos(const dist_collective_options& options) {
  const int64_t members = dist_replica_num_replicas(replica_);
  const bool beside = recipe_.wrong == Fault::kOtherSplit;
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 2;
  halo.parts = take_pair<int64_t>(beside ? 1 : members, beside ? members : 1);
  halo.low = take_pair<int64_t>(1, 1);
  halo.high = take_pair<int64_t>(1, 1);
  halo.edges = take_pair<dist_edge>(DIST_EDGE_WRAP, DIST_EDGE_ZERO);
  return dist_halo_exchange(replica_, in_, &halo, out_, &options);
}

// From rows to columns. The wrong call asks for rows.
dist_status Step::reshard(const dist_collective_options& options) {
  const int64_t members = dist_replica_num_replicas(replica_);
  const bool stays = recipe_.wrong == Fault::kOtherSplit;
  dist_partition from = DIST_PARTITION_INIT;
  from.shape = take_pair(in_->shape[0] * members, in_->shape[1]);
  from.ndim = from.num_dimensions = 2;
  from.num_logical_devices = static_cast<int32_t>(members);
  dist_partition to = from;
  from.dimensions = take_pair<int64_t>(members, 1);
  to.dimensions = stays ? from.dimensions : take_pair<int64_t>(1, members);
  return dist_reshard(replica_, &from, &to, in_, out_, &options);
}

dist_status Step::call_on_tensors(const dist_collective_options& options, dist_work** out_work) {
  const int replicas = dist_replica_num_replicas(replica_);
  const int me = dist_replica_id(replica_);
  const int32_t root = (replicas / 2 + (recipe_.wrong == Fault::kWrongRoot ? 1 : 0)) % replicas;
  const dist_reduce_op op = recipe_.own_operator               ? DIST_REDUCE_USER
                            : recipe_.wrong == Fault::kWrongOp ? DIST_REDUCE_MAX
                                                               : DIST_REDUCE_SUM;
  // The collectives of kCollectives that have tensors.
  // @every collective but NONE, RETURN, BARRIER, MERGE_CALL, REDUCE_APPLY
  switch (recipe_.kind) {
    case DIST_COLLECTIVE_ALL_REDUCE: return dist_all_reduce(replica_, op, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_REDUCE:
      return dist_reduce_to_root(replica_, op, root, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_REDUCE_SCATTER:
      return dist_reduce_scatter(replica_, op, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_ALL_GATHER: return dist_all_gather(replica_, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_GATHER:
      return dist_gather_to_root(replica_, root, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_BROADCAST: return dist_broadcast(replica_, root, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_SCATTER:
      return dist_scatter_from_root(replica_, root, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_ALL_TO_ALL: return dist_all_to_all(replica_, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_SCAN:
      return dist_scan(replica_, op, DIST_SCAN_INCLUSIVE, in_, out_, n_, &options, out_work);
    case DIST_COLLECTIVE_HALO_EXCHANGE: return exchange_halos(options);
    case DIST_COLLECTIVE_RESHARD: return reshard(options);
    case DIST_COLLECTIVE_PERMUTE:
    default:
      return dist_permute(replica_, (me + 1) % replicas, (me + replicas - 1) % replicas, in_, out_, n_,
                          &options, out_work);
  }
}

dist_status Step::call() {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag_;
  options.group = recipe_.group;
  options.timeout_ns = recipe_.timeout_ns;
  options.planned = recipe_.form == Form::kPlanned;
  if (recipe_.own_operator && recipe_.kind != DIST_COLLECTIVE_MERGE_CALL) {
    options.reduce_fn = recipe_.wrong == Fault::kOtherFunction ? add_there : add_here;
  }
  dist_work** const out_work = recipe_.form == Form::kBlocking ? nullptr : &work_;
  dist_status status;
  if (recipe_.kind == DIST_COLLECTIVE_BARRIER) {
    status = dist_barrier(replica_, &options, out_work);
  } else if (recipe_.kind == DIST_COLLECTIVE_MERGE_CALL) {
    const dist_merge_fn fn = recipe_.wrong == Fault::kOtherFunction ? merge_there : merge_here;
    status = dist_merge_call(replica_, fn, nullptr, nullptr, nullptr, &options, nullptr);
  } else {
    status = call_on_tensors(options, out_work);
  }
  // The library has copied these, or the call has returned.
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
    status = dist_work_wait(work_, DIST_NO_TIMEOUT);
  }
  ruin(data_);
  return status;
}

}  // namespace faults
