// SPDX-License-Identifier: Apache-2.0
// join() combines the results of logical devices into one value.
#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <vector>

#include "core/layout/shards.hpp"
#include "core/value/nest.hpp"

namespace dist {
namespace {

using Results = std::span<const ValueRef>;

// The tiles of a whole tensor. Their sizes are those of the devices' tensors.
class Tiles {
 public:
  Tiles(Memory& memory, Results tensors, const Sharding& how)
      : tensors_(tensors),
        how_(how),
        begins_(tensors.size() * static_cast<std::size_t>(how.ndim), 0, &memory) {}

  // Whether the tiles fit together. If not, `out_misfit` is the first device whose tensor does not fit.
  bool fit(std::size_t* out_misfit) noexcept {
    const dist_tensor first = tensors_[0]->tensor();
    for (std::size_t d = 0; d < tensors_.size(); ++d) {
      *out_misfit = d;
      const dist_tensor tensor = tensors_[d]->tensor();
      if (tensor.dtype != first.dtype || tensor.ndim != how_.ndim) return false;
      for (int32_t i = 0; i < how_.ndim; ++i) {
        // Adjacent tiles must begin at the same position and have the same size in this dimension.
        const int64_t index = index_of(d, i);
        const auto first_there = static_cast<std::size_t>(index * step_of(i));
        if (tensor.shape[i] != tensors_[first_there]->tensor().shape[i]) return false;
        if (index > 0) {
          const auto before = d - static_cast<std::size_t>(step_of(i));
          begin(d)[i] = begin(before)[i] + tensors_[before]->tensor().shape[i];
        }
      }
    }
    return true;
  }

  void shape(int64_t* out) noexcept {
    const std::size_t last = tensors_.size() - 1;
    for (int32_t i = 0; i < how_.ndim; ++i) out[i] = begin(last)[i] + tensors_[last]->tensor().shape[i];
  }
  int64_t* begin(std::size_t device) noexcept {
    return begins_.data() + device * static_cast<std::size_t>(how_.ndim);
  }

 private:
  int64_t step_of(int32_t dimension) const noexcept {
    int64_t step = 1;
    for (int32_t i = dimension + 1; i < how_.ndim; ++i) step *= how_.dimensions[i];
    return step;
  }
  int64_t index_of(std::size_t device, int32_t dimension) const noexcept {
    return static_cast<int64_t>(device) / step_of(dimension) % how_.dimensions[dimension];
  }

  const Results tensors_;
  const Sharding& how_;
  std::pmr::vector<int64_t> begins_;
};

class Joiner {
 public:
  Joiner(Memory& memory, Arena& arena, std::size_t devices, const Joining& how) noexcept
      : memory_(memory), arena_(arena), devices_(devices), how_(how) {}

  Status walk(Value& merged, const Path& path, ValueRef* out) {
    if (merged.is_nest()) {
      return map_items(
          memory_, merged, path,
          [&](Value& item, const Path& here, ValueRef* made) { return walk(item, here, made); }, out);
    }
    const Partition* given = nullptr;
    if (how_.partitions.size() == 1) given = how_.partitions[0];
    if (how_.partitions.size() > 1 && leaf_ < how_.partitions.size()) given = how_.partitions[leaf_];
    ++leaf_;
    if (!merged.distributed()) {
      *out = ValueRef::share(&merged);
      return kOk;
    }
    return given == nullptr ? join_as_fits(merged.items(), path, out)
                            : join_as_given(merged.items(), *given, path, out);
  }

  Status check_leaves() const noexcept {
    if (how_.partitions.size() <= 1 || how_.partitions.size() == leaf_) return kOk;
    return invalid_argument(
        "the `results` are %zu tensors, but `num_results` is %zu. Pass one partition for all of them, or one "
        "for each.",
        leaf_, how_.partitions.size());
  }

 private:
  Status join_as_fits(Results results, const Path& path, ValueRef* out) {
    std::size_t there = 0;
    std::size_t device = 0;
    for (std::size_t d = 0; d < results.size(); ++d) {
      if (results[d]->is_none()) continue;
      device = d;
      ++there;
    }
    if (there == 1) return assigned(results, device, out);
    DIST_TRY(check_tensors(results, path));
    if (how_.like != nullptr && results[0]->tensor().ndim == how_.like->ndim) {
      Tiles tiles(memory_, results, *how_.like);
      std::size_t misfit = 0;
      if (tiles.fit(&misfit)) return split(results, tiles, *how_.like, out);
    }
    bool equal = false;
    std::size_t other = 0;
    DIST_TRY(all_equal(results, &equal, &other));
    if (equal) return replicated(*results[0], out);
    return differ(results, other, path, "neither match the tiles of the first split argument nor are equal");
  }

  Status join_as_given(Results results, const Partition& given, const Path& path, ValueRef* out) {
    if (given.kind == DIST_PARTITION_ASSIGN) {
      const auto device = static_cast<std::size_t>(given.logical_device);
      DIST_TRY(check_tensor_of(results, device, path));
      return assigned(results, device, out);
    }
    DIST_TRY(check_tensors(results, path));
    if (given.kind == DIST_PARTITION_REPLICATE) {
      bool equal = false;
      std::size_t other = 0;
      DIST_TRY(all_equal(results, &equal, &other));
      return equal ? replicated(*results[0], out)
                   : differ(results, other, path, "must be equal, because the result is replicated");
    }
    Sharding sharding{
        given.kind, given.num_logical_devices, 0, static_cast<int32_t>(given.dimensions.size()), {}};
    std::copy(given.dimensions.begin(), given.dimensions.end(), sharding.dimensions);
    Tiles tiles(memory_, results, sharding);
    std::size_t misfit = 0;
    if (tiles.fit(&misfit)) return split(results, tiles, sharding, out);
    return differ(results, misfit, path, "do not match the given partition");
  }

  static Status check_tensor_of(Results results, std::size_t device, const Path& path) noexcept {
    if (results[device]->has_tensor() && results[device]->variable() == nullptr) return kOk;
    return invalid_argument(
        "%s: logical device %zu returned %s, but devices must return tensors, or all the same object",
        PathText(path).c_str(), device, Value::kind_name(results[device]->kind()));
  }
  static Status check_tensors(Results results, const Path& path) noexcept {
    for (std::size_t d = 0; d < results.size(); ++d) DIST_TRY(check_tensor_of(results, d, path));
    return kOk;
  }

  static Status differ(Results results, std::size_t device, const Path& path, const char* how) noexcept {
    char first[256];
    char other[256];
    Value::describe(results[0].get(), first, sizeof first);
    Value::describe(results[device].get(), other, sizeof other);
    return invalid_argument(
        "%s: the results of the logical devices %s: device 0 returned %s, but device %zu returned %s. "
        "Describe in `options->results` how they fit together.",
        PathText(path).c_str(), how, first, device, other);
  }

  Status all_equal(Results results, bool* out_equal, std::size_t* out_other) {
    const dist_tensor first = results[0]->tensor();
    const std::size_t bytes = elements_of(first) * dtype_size(first.dtype);
    ValueRef without_gaps;
    DIST_TRY(dense_of(results[0], &without_gaps));
    for (std::size_t d = 1; d < results.size(); ++d) {
      *out_other = d;
      const dist_tensor other = results[d]->tensor();
      if (other.dtype != first.dtype || !same_shape(other, first)) return kOk;
      ValueRef dense;
      DIST_TRY(dense_of(results[d], &dense));
      if (bytes != 0 && std::memcmp(without_gaps->tensor().data, dense->tensor().data, bytes) != 0)
        return kOk;
    }
    *out_equal = true;
    return kOk;
  }

  Status dense_of(const ValueRef& value, ValueRef* out) {
    *out = value;
    return value->tensor().strides == nullptr ? kOk : Value::copy_tensor(memory_, value->tensor(), out);
  }

  Status assigned(Results results, std::size_t device, ValueRef* out) {
    Partition how;
    how.kind = DIST_PARTITION_ASSIGN;
    how.num_logical_devices = static_cast<int32_t>(devices_);
    how.logical_device = static_cast<int32_t>(device);
    return divide(memory_, *results[device], LocalReplica{0}, how, out);
  }

  Status replicated(Value& value, ValueRef* out) {
    Partition how;
    how.kind = DIST_PARTITION_REPLICATE;
    how.num_logical_devices = static_cast<int32_t>(devices_);
    return divide(memory_, value, LocalReplica{0}, how, out);
  }

  // Copies the tiles into a new whole tensor. Views of it become the shards.
  Status split(Results results, Tiles& tiles, const Sharding& how, ValueRef* out) {
    int64_t shape[DIST_MAX_NDIM];
    tiles.shape(shape);
    ValueRef whole;
    DIST_TRY(
        Value::copy_tensor(memory_, {nullptr, results[0]->tensor().dtype, how.ndim, shape, nullptr}, &whole));
    std::pmr::vector<ValueRef> shards(results.size(), &memory_);
    std::pmr::vector<Value*> pointers(results.size(), &memory_);
    for (std::size_t d = 0; d < results.size(); ++d) {
      DIST_TRY(view_of(memory_, *whole, tiles.begin(d), results[d]->tensor().shape, &shards[d]));
      pointers[d] = shards[d].get();
    }
    DIST_TRY(
        arena_.parallel_for(0, static_cast<int64_t>(results.size()), 1, [&](int64_t first, int64_t last) {
          for (auto d = static_cast<std::size_t>(first); d < static_cast<std::size_t>(last); ++d)
            copy_elements(results[d]->tensor(), shards[d]->tensor());
        }));
    return Value::create_sharded(memory_, *whole, how, pointers, tiles.begin(0), out);
  }

  Memory& memory_;
  Arena& arena_;
  const std::size_t devices_;
  const Joining& how_;
  std::size_t leaf_ = 0;
};

}  // namespace

Status join(Memory& memory, Arena& arena, std::span<Value* const> results, const Joining& how,
            ValueRef* out) {
  ValueRef merged;
  DIST_TRY(merge(memory, results, "result", &merged, "logical device"));
  if (!merged) {
    *out = ValueRef();
    return kOk;
  }
  Joiner joiner(memory, arena, results.size(), how);
  ValueRef joined;
  DIST_TRY(joiner.walk(*merged, Path{"result"}, &joined));
  DIST_TRY(joiner.check_leaves());
  *out = std::move(joined);
  return kOk;
}

}  // namespace dist
