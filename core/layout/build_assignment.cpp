// SPDX-License-Identifier: Apache-2.0
// TensorFlow's rule for placing replicas on a topology.
#include <algorithm>
#include <array>
#include <utility>

#include "core/layout/device_assignment.hpp"
#include "core/layout/ring_order.hpp"

namespace dist {
namespace {

constexpr std::size_t kCore = kMeshNdim - 1;  // the last dimension: the cores of a chip

// The layout of replicas in the mesh, if the computation fits. Products are below kMaxPositions, which is
// checked first.
struct Blocks {
  Coordinates shape{};      // of a replica, in devices
  Coordinates stride{};     // distance between devices
  Coordinates footprint{};  // shape * stride: the extent of a replica
  Coordinates counts{};     // number of replicas that fit in each dimension
  int32_t devices = 1;      // of a replica
  int32_t max_replicas = 1;
  bool strided = false;
};

Status read_sizes(std::span<const int32_t> given, const char* what, Coordinates* out) noexcept {
  out->fill(1);
  if (given.data() == nullptr) return kOk;
  if (given.size() != kMeshNdim) {
    return invalid_argument("%s has %zu numbers, but the mesh has %zu dimensions", what, given.size(),
                            kMeshNdim);
  }
  if (std::any_of(given.begin(), given.end(), [](int32_t n) { return n < 1; }))
    return invalid_argument("%s is %s, but its numbers must be at least 1", what,
                            CoordinatesText(given).text);
  std::copy(given.begin(), given.end(), out->begin());
  return kOk;
}

Status read_blocks(const Coordinates& mesh, const Computation& computation, Blocks* out) noexcept {
  DIST_TRY(read_sizes(computation.shape, "computation_shape", &out->shape));
  DIST_TRY(read_sizes(computation.stride, "computation_stride", &out->stride));
  for (std::size_t i = 0; i < kMeshNdim; ++i) {
    const int64_t footprint = int64_t{out->shape[i]} * out->stride[i];
    if (footprint > mesh[i]) {
      return invalid_argument("`computation_shape` %s with `computation_stride` %s does not fit the mesh %s",
                              CoordinatesText(out->shape).text, CoordinatesText(out->stride).text,
                              CoordinatesText(mesh).text);
    }
    out->footprint[i] = static_cast<int32_t>(footprint);
    // Strided blocks interleave: as many of them fit into one another as the stride has steps.
    out->counts[i] = mesh[i] / out->footprint[i] * out->stride[i];
    out->devices *= out->shape[i];
    out->max_replicas *= out->counts[i];
    out->strided = out->strided || out->stride[i] != 1;
  }
  if (computation.num_replicas > out->max_replicas) {
    return invalid_argument(
        "`num_replicas` is %d, but only %d replicas with `computation_shape` %s and `computation_stride` %s "
        "fit the mesh %s",
        computation.num_replicas, out->max_replicas, CoordinatesText(out->shape).text,
        CoordinatesText(out->stride).text, CoordinatesText(mesh).text);
  }
  if (computation.num_replicas < 0)
    return invalid_argument("`num_replicas` is %d, but must be at least 0", computation.num_replicas);
  return kOk;
}

// The smallest t with t^power >= n.
int32_t ceil_of_root(int32_t n, std::size_t power) noexcept {
  if (power == 1) return n;
  for (int32_t t = 1;; ++t) {
    int64_t product = 1;
    for (std::size_t i = 0; i < power && product < n; ++i) product *= t;
    if (product >= n) return t;
  }
}

// Returns a box of at least n replicas that is close to a cube. The dimension with the least room is handled
// first, so that the others take the rest. Among equal dimensions, core comes first, then x, y and z.
Coordinates replica_box(const Coordinates& counts, int32_t n) noexcept {
  std::array<std::size_t, kMeshNdim> order = {kCore, 0, 1, 2};
  const auto key = [&](std::size_t axis) { return std::pair(counts[axis], (axis + 1) % kMeshNdim); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  Coordinates box{};
  int32_t left = n;
  for (std::size_t i = 0; i < kMeshNdim; ++i) {
    int32_t& size = box[order[i]];
    size = std::min(ceil_of_root(left, kMeshNdim - i), counts[order[i]]);
    left = (left + size - 1) / size;
  }
  return box;
}

class Layout {
 public:
  Layout(const Topology& topology, const Blocks& blocks, int32_t num_replicas)
      : topology_(topology), blocks_(blocks), n_(num_replicas), made_(&topology.memory()) {
    made_.reserve(static_cast<std::size_t>(n_) * static_cast<std::size_t>(blocks.devices) * kMeshNdim);
  }

  void in_task_order() {
    const auto numbers =
        static_cast<std::ptrdiff_t>(n_) * blocks_.devices * static_cast<std::ptrdiff_t>(kMeshNdim);
    const auto all = topology_.device_coordinates();
    made_.assign(all.begin(), all.begin() + numbers);
  }

  // The rings consist of chips. The cores of a chip are consecutive.
  void as_rings() {
    const Coordinates& shape = blocks_.shape;
    const Coordinates box = replica_box(blocks_.counts, n_);
    std::pmr::memory_resource* const memory = &topology_.memory();
    const auto inner = ring_order(shape[0], shape[1], shape[2], memory);
    const auto outer = ring_order(box[0], box[1], box[2], memory);
    for (std::size_t replica = 0; replica < static_cast<std::size_t>(n_); ++replica) {
      for (const Chip& chip : inner) {
        for (int32_t core = 0; core < shape[kCore]; ++core) {
          for (std::size_t axis = 0; axis < kCore; ++axis)
            made_.push_back(outer[replica][axis] * shape[axis] + chip[axis]);
          made_.push_back(core);
        }
      }
    }
  }

  void as_blocks() {
    if (n_ == 0) return;
    const Coordinates box = replica_box(blocks_.counts, n_);
    for (int32_t replica = 0; replica < n_; ++replica) {
      Coordinates first{};
      int32_t rest = replica;
      for (const std::size_t axis : {kCore, std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
        const int32_t at = rest % box[axis];
        rest /= box[axis];
        const int32_t stride = blocks_.stride[axis];
        first[axis] = at / stride * blocks_.footprint[axis] + at % stride;
      }
      block(first);
    }
  }

  Status take(Ref<Topology> topology, Ref<DeviceAssignment>* out) const {
    return DeviceAssignment::create(std::move(topology), made_.data(), n_, blocks_.devices, kMeshNdim, out);
  }

 private:
  void block(const Coordinates& first) {
    Coordinates at{};
    for (int32_t i = 0; i < blocks_.devices; ++i) {
      int32_t rest = i;
      for (std::size_t axis = kMeshNdim; axis-- > 0;) {
        at[axis] = first[axis] + rest % blocks_.shape[axis] * blocks_.stride[axis];
        rest /= blocks_.shape[axis];
      }
      made_.insert(made_.end(), at.begin(), at.end());
    }
  }

  const Topology& topology_;
  const Blocks& blocks_;
  const int32_t n_;
  std::pmr::vector<int32_t> made_;
};

Status check_degraded(const Topology& topology, const Blocks& blocks, int32_t num_replicas) noexcept {
  if (blocks.strided) {
    return invalid_argument("%zu devices of the mesh are missing: `computation_stride` must be 1 everywhere",
                            topology.missing().size());
  }
  if (num_replicas == 0)
    return invalid_argument("%zu devices of the mesh are missing: `num_replicas` must be at least 1",
                            topology.missing().size());
  const int64_t wanted = int64_t{num_replicas} * blocks.devices;
  const int64_t there = int64_t{topology.num_tasks()} * topology.num_devices_per_task();
  if (wanted > there) {
    return invalid_argument("%d replicas of %d devices need %lld devices, but the topology has %lld",
                            num_replicas, blocks.devices, static_cast<long long>(wanted),
                            static_cast<long long>(there));
  }
  return kOk;
}

}  // namespace

Status build_assignment(Ref<Topology> topology, const Computation& computation, Ref<DeviceAssignment>* out) {
  if (computation.order < DIST_DEVICE_ORDER_AUTO || computation.order > DIST_DEVICE_ORDER_MESH) {
    return invalid_argument(
        "`device_order` is `%d`: use `DIST_DEVICE_ORDER_AUTO`, `DIST_DEVICE_ORDER_RING` or "
        "`DIST_DEVICE_ORDER_MESH`",
        computation.order);
  }
  const int32_t n = computation.num_replicas;
  const Coordinates& mesh = topology->mesh().shape();
  Blocks blocks;
  DIST_TRY(read_blocks(mesh, computation, &blocks));
  const bool degraded = !topology->missing().empty();
  const bool rings_fit = blocks.shape[kCore] == mesh[kCore] && !blocks.strided && n == blocks.max_replicas;
  if (degraded) DIST_TRY(check_degraded(*topology, blocks, n));
  if (!degraded && computation.order == DIST_DEVICE_ORDER_RING && !rings_fit) {
    return invalid_argument(
        "RING needs replicas with all %d cores of their chips, without a stride, and as many replicas as fit "
        "(%d). Use AUTO.",
        mesh[kCore], blocks.max_replicas);
  }
  Layout layout(*topology, blocks, n);
  if (degraded) {
    layout.in_task_order();
  } else if (rings_fit &&
             (computation.order == DIST_DEVICE_ORDER_RING || computation.order == DIST_DEVICE_ORDER_AUTO)) {
    layout.as_rings();
  } else {
    layout.as_blocks();
  }
  return layout.take(std::move(topology), out);
}

}  // namespace dist
