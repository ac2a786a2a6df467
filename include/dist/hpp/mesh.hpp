// SPDX-License-Identifier: Apache-2.0
//
// dist/hpp/mesh.hpp: mesh.h for C++: partitions of tensors, functions on all logical devices of a replica, and
// exchanges between devices.
//
//     strategy.run([](dist::replica replica) {
//       const dist::value image = next_image(replica);
//       const dist::value halves = replica.split_to_logical_devices(image, {1, 2, 1, 1});
//       const dist::value blurred = replica.run_on_devices(
//           [](dist::replica device, const dist::value &args) { return blur(device, args[0]); }, halves);
//     });
#ifndef DIST_HPP_MESH_HPP
#define DIST_HPP_MESH_HPP

#include "run.hpp"
#include "topology.hpp"

namespace dist {

// ---- On a replica ----------------------------------------------------------------------------------------

inline value replica::split_to_logical_devices(const value &given,
                                               std::initializer_list<int64_t> partition_dimensions,
                                               bool uneven) const {
  dist_split_options options = DIST_SPLIT_OPTIONS_INIT;
  options.uneven = uneven;
  return value::made([&](dist_value **out) {
    return dist_split_to_logical_devices(handle_, given.get(), partition_dimensions.begin(),
                                         partition_dimensions.size(), &options, out);
  });
}
inline value replica::assign_to_logical_device(const value &given, int32_t logical_device) const {
  return value::made([&](dist_value **out) {
    return dist_assign_to_logical_device(handle_, given.get(), logical_device, out);
  });
}
inline value replica::replicate_to_logical_devices(const value &given) const {
  return value::made(
      [&](dist_value **out) { return dist_replicate_to_logical_devices(handle_, given.get(), out); });
}

// The part of a tensor that a logical device has: `size` elements starting at `begin` in each dimension; -1 = not
// known.
struct shard {
  std::vector<int64_t> tile;  // index of the tile in a split
  std::vector<int64_t> begin;
  std::vector<int64_t> size;
  int64_t elements;
};

// The division of a tensor among the logical devices of a replica.
class partition {
 public:
  // `dimensions`: number of parts of each dimension.
  static partition split(std::vector<int64_t> shape, std::vector<int64_t> dimensions, bool uneven = false) {
    partition made(DIST_PARTITION_SPLIT, std::move(shape), product(dimensions));
    made.dimensions_ = std::move(dimensions);
    made.c_.uneven = uneven;
    return made;
  }
  static partition assign(std::vector<int64_t> shape, int32_t logical_device, int32_t num_logical_devices) {
    partition made(DIST_PARTITION_ASSIGN, std::move(shape), num_logical_devices);
    made.c_.logical_device = logical_device;
    return made;
  }
  static partition replicate(std::vector<int64_t> shape, int32_t num_logical_devices) {
    return partition(DIST_PARTITION_REPLICATE, std::move(shape), num_logical_devices);
  }
  // From the C struct; the arrays are copied.
  explicit partition(const dist_partition &given)
      : c_(given),
        shape_(given.shape, given.shape + given.ndim),
        dimensions_(given.dimensions, given.dimensions + given.num_dimensions) {}

  // Throws if a tensor cannot be partitioned in this way.
  void check() const {
    const dist_partition c = get();
    dist::check(dist_partition_check(&c));
  }
  dist::shard shard(int32_t logical_device) const {
    const dist_partition c = get();
    dist::shard found{std::vector<int64_t>(c.ndim), std::vector<int64_t>(c.ndim),
                      std::vector<int64_t>(c.ndim), 0};
    dist::check(dist_partition_shard(&c, logical_device, found.tile.data(), found.begin.data(),
                                     found.size.data(), &found.elements));
    return found;
  }
  dist_partition_kind kind() const noexcept { return c_.kind; }
  const std::vector<int64_t> &shape() const noexcept { return shape_; }
  const std::vector<int64_t> &dimensions() const noexcept { return dimensions_; }
  int32_t num_logical_devices() const noexcept { return c_.num_logical_devices; }
  // Borrows from this object.
  [[nodiscard]] dist_partition get() const noexcept {
    dist_partition c = c_;
    c.shape = shape_.data();
    c.ndim = shape_.size();
    c.dimensions = dimensions_.data();
    c.num_dimensions = dimensions_.size();
    return c;
  }

 private:
  partition(dist_partition_kind kind, std::vector<int64_t> shape, int32_t num_logical_devices)
      : shape_(std::move(shape)) {
    c_.kind = kind;
    c_.num_logical_devices = num_logical_devices;
  }
  static int32_t product(const std::vector<int64_t> &dimensions) noexcept {
    int64_t parts = 1;
    for (const int64_t each : dimensions) {
      if (each < 1 || each > DIST_MAX_MESH_POSITIONS) return 0;  // which is rejected
      parts = parts * each <= DIST_MAX_MESH_POSITIONS ? parts * each : DIST_MAX_MESH_POSITIONS + 1;
    }
    return static_cast<int32_t>(parts);
  }

  dist_partition c_ = DIST_PARTITION_INIT;
  std::vector<int64_t> shape_, dimensions_;
};

// The shard that a logical device has of a sharded value: a view, borrowed from the value, and the position at which it
// begins.
struct value_shard {
  dist::const_tensor tensor;
  std::vector<int64_t> begin;
};

inline dist::partition value::partition() const {
  dist_partition found = DIST_PARTITION_INIT;
  check(dist_value_partition(handle_, &found));
  return dist::partition(found);
}
inline value_shard value::shard(int32_t logical_device) const {
  dist_tensor view;
  std::vector<int64_t> begin(DIST_MAX_NDIM);
  check(dist_value_shard(handle_, logical_device, begin.data(), &view));
  begin.resize(static_cast<std::size_t>(view.ndim));
  return {dist::const_tensor(view), std::move(begin)};
}

// The number of bytes that a reshard moves to a logical device; -1 = to all of them together.
inline std::size_t reshard_bytes(const partition &from, const partition &to, dist_dtype dtype,
                                 int32_t logical_device = -1) {
  const dist_partition c_from = from.get(), c_to = to.get();
  std::size_t bytes = 0;
  check(dist_reshard_bytes(&c_from, &c_to, dtype, logical_device, &bytes));
  return bytes;
}

// The width of the halo around a device's tile of a tensor, in each dimension; empty lists count as 0.
class halo {
 public:
  explicit halo(std::vector<int64_t> parts, std::vector<int64_t> low = {}, std::vector<int64_t> high = {},
                std::vector<dist_edge> edges = {})
      : parts_(std::move(parts)), low_(std::move(low)), high_(std::move(high)), edges_(std::move(edges)) {
    const auto fits = [this](std::size_t n) { return n == 0 || n == parts_.size(); };
    if (!fits(low_.size()) || !fits(high_.size()) || !fits(edges_.size()))
      throw error(DIST_INVALID_ARGUMENT, "a halo has one number for each dimension");
  }
  // Borrows from this object.
  [[nodiscard]] dist_halo get() const noexcept {
    dist_halo c = DIST_HALO_INIT;
    c.ndim = static_cast<int32_t>(parts_.size());
    c.parts = parts_.data();
    c.low = low_.empty() ? nullptr : low_.data();
    c.high = high_.empty() ? nullptr : high_.data();
    c.edges = edges_.empty() ? nullptr : edges_.data();
    return c;
  }

 private:
  std::vector<int64_t> parts_, low_, high_;
  std::vector<dist_edge> edges_;
};

// ---- On a replica ----------------------------------------------------------------------------------------

template <class Body>
value replica::run_on_devices(Body &&body, const value &args, const value &kwargs,
                              const dist_devices_options &options) const {
  return detail::run_body(
      std::forward<Body>(body), strategy().num_logical_devices(), options.timeout_ns,
      [&](dist_values_fn fn, void *user_data, dist_value **out) {
        return dist_run_on_devices(handle_, fn, user_data, args.get(), kwargs.get(), &options, out);
      },
      [](const error &report) { return report.logical_device(); });
}
template <class Body>
value replica::run_on_devices(Body &&body, const value &args, const value &kwargs) const {
  const dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
  return run_on_devices(std::forward<Body>(body), args, kwargs, options);
}

// ---- On a logical device ---------------------------------------------------------------------------------

inline coordinates replica::device_coordinates() const {
  coordinates position;
  dist::check(dist_device_coordinates(handle_, position.data()));
  return position;
}
inline axis_place replica::device_axis(const char *name) const {
  axis_place place;
  dist::check(dist_device_axis(handle_, name, &place.index, &place.size));
  return place;
}
inline group_ref replica::device_axis_group(const char *name) const {
  const dist_group *along = nullptr;
  dist::check(dist_device_axis_group(handle_, name, &along));
  return group_ref(along);
}
inline void replica::halo_exchange(const const_tensor &in, const halo &around, const tensor &out,
                                   const collective_options &options) const {
  const dist_tensor tile = in.get();
  dist_tensor wider = out.get();
  const dist_halo c = around.get();
  const auto given = options.get();
  dist::check(dist_halo_exchange(handle_, &tile, &c, &wider, &given));
}
// Pass dist::nothing if this device has nothing.
inline void replica::reshard(const partition &from, const partition &to, const const_tensors &in,
                             const tensors &out, const collective_options &options) const {
  const dist_partition c_from = from.get(), c_to = to.get();
  const auto given = options.get();
  dist::check(dist_reshard(handle_, &c_from, &c_to, in.in(), out.out(), &given));
}

}  // namespace dist

#endif  // DIST_HPP_MESH_HPP
