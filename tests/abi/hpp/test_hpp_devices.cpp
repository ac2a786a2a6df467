// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: topologies, device assignments, partitions, and replicas made of logical devices.
#include "hpp_support.hpp"

#include <condition_variable>
#include <numeric>

namespace {

using dist::const_tensor;
using dist::reduce_op;
using dist::replica;
using dist::tensor;
using dist::value;

constexpr int32_t D = 4;

// Two chips with two cores each, in one task.
dist::topology small_topology() {
  return dist::topology({2, 1, 1, 2}, {0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1}, 1, 4);
}

// `replicas` with D logical devices each, in a square with the axes "row" and "column".
dist::strategy mesh_of(int32_t replicas) {
  std::vector<int32_t> coordinates;
  for (int32_t x = 0; x < replicas; ++x) {
    for (int32_t core = 0; core < D; ++core) coordinates.insert(coordinates.end(), {x, 0, 0, core});
  }
  const dist::topology topology({replicas, 1, 1, D}, coordinates, 1, replicas * D);
  const auto assignment =
      dist::device_assignment::build(topology, {1, 1, 1, D}, replicas, DIST_DEVICE_ORDER_MESH);
  const dist_mesh_axis axes[] = {{"row", 2}, {"column", 2}};
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment.get();
  mesh.axes = axes;
  mesh.num_axes = 2;
  return dist::strategy(options);
}

void topologies() {
  dist::topology topology = small_topology();
  assert_int_equal(topology.mesh_rank(), 4);
  assert_int_equal(topology.mesh_shape()[3], 2);
  assert_int_equal(topology.num_tasks(), 1);
  assert_int_equal(topology.num_devices_per_task(), 4);
  assert_int_equal(topology.device_coordinates()[8], 1);
  assert_int_equal(topology.num_missing_devices(), 0);
  assert_null(topology.missing_devices());
  assert_int_equal(topology.task_at({1, 0, 0, 1}), 0);
  assert_int_equal(topology.device_at({1, 0, 0, 1}), 3);
  assert_string_equal(topology.device_name_at({1, 0, 0, 1}, "worker").c_str(),
                      "/job:worker/task:0/device:TPU:3");
  assert_string_equal(topology.host_name_at({0, 0, 0, 0}).c_str(), "/task:0/device:CPU:0");
  assert_false(topology.explain().empty());
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, topology.task_at({7, 0, 0, 0}));
  REQUIRE_ERROR(DIST_FAILED_PRECONDITION, topology.cpu_at({0, 0, 0, 0}));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::topology({1, 1, 1, 1}, {0, 0, 0}, 1, 1));
  topology = dist::topology::from_host();
  assert_true(topology.cpu_at({0, 0, 0, 0}) >= 0);
}

void device_assignments() {
  const dist::topology topology = small_topology();
  dist::device_assignment chips = dist::device_assignment::build(topology, {1, 1, 1, 2}, 2);
  assert_int_equal(chips.num_replicas(), 2);
  assert_int_equal(chips.num_logical_devices(), 2);
  assert_int_equal(chips.core_assignment()[4], chips.coordinates(0, 1)[0]);
  assert_true(chips.coordinates(1, -1) == (dist::coordinates{1, 0, 0, 1}));
  assert_int_equal(chips.device(1, 1), 3);
  assert_string_equal(chips.device_name(1, 1, "tpu").c_str(), "/job:tpu/task:0/device:TPU:3");
  assert_string_equal(chips.host_name().c_str(), "/task:0/device:CPU:0");
  assert_true(chips.lookup_replicas(0, 1) == (std::vector<int32_t>{0, 1}));
  assert_int_equal(chips.topology().num_devices_per_task(), 4);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, chips.coordinates(2, 0));
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::device_assignment::build(topology, {2, 1, 1, 2}, 2));
  const dist::device_assignment by_hand(topology, {1, 0, 0, 0}, 1, 1);
  assert_int_equal(by_hand.device(), 2);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::device_assignment(topology, {1, 0, 0}, 1, 1));
  chips = dist::device_assignment::single(topology);
  assert_int_equal(chips.num_replicas(), 1);
}

void partitions() {
  const auto rows = dist::partition::split({8, 6}, {2, 2});
  rows.check();
  const dist::shard last = rows.shard(3);
  assert_true(last.tile == (std::vector<int64_t>{1, 1}) && last.begin == (std::vector<int64_t>{4, 3}));
  assert_true(last.size == (std::vector<int64_t>{4, 3}));
  assert_int_equal(last.elements, 12);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::partition::split({7, 6}, {2, 2}).check());
  dist::partition::split({7, 6}, {2, 2}, true).check();
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::partition::split({7, 6}, {0, 2}).check());
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::partition::assign({4}, 9, D).check());
  assert_int_equal(dist::partition::assign({4}, 1, D).shard(0).elements, 0);
  const auto everywhere = dist::partition::replicate({8, 6}, D);
  assert_int_equal(dist::reshard_bytes(everywhere, rows, DIST_F32), 0);
  assert_int_equal(dist::reshard_bytes(rows, everywhere, DIST_F32, 0), 36 * 4);
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::reshard_bytes(rows, everywhere, dist_dtype{}));
}

void functions_on_devices() {
  const dist::strategy strategy = mesh_of(2);
  assert_int_equal(strategy.num_replicas(), 2);
  assert_int_equal(strategy.num_logical_devices(), D);
  assert_int_equal(strategy.device_assignment().num_logical_devices(), D);
  strategy.run([](replica replica) {
    const dist::strategy_ref owner = replica.strategy();
    std::vector<int32_t> numbers(16);
    std::iota(numbers.begin(), numbers.end(), 0);
    const value whole(owner, tensor(numbers.data(), {4, 4}));
    const value split = replica.split_to_logical_devices(whole, {2, 2});
    REQUIRE(split.kind() == DIST_VALUE_SHARDED);
    REQUIRE(split.partition().dimensions() == (std::vector<int64_t>{2, 2}));
    const dist::value_shard last = split.shard(3);
    REQUIRE(last.begin == (std::vector<int64_t>{2, 2}) && *last.tensor.data<int32_t>() == 10);
    REQUIRE(row_of<int32_t>(split) == numbers);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, replica.split_to_logical_devices(whole, {3, 1}));
    const value at_one = replica.assign_to_logical_device(whole, 1);
    REQUIRE(at_one.partition().kind() == DIST_PARTITION_ASSIGN);
    REQUIRE_ERROR(DIST_NOT_FOUND, at_one.shard(0));
    const value copies = replica.replicate_to_logical_devices(whole);
    REQUIRE(replica.device_replica() == -1);

    const value sums = replica.run_on_devices(
        [&](dist::replica device, const value &args) {
          REQUIRE(device.device_replica() == replica.id() && device.num_replicas() == D);
          REQUIRE(args[1].kind() == (device.id() == 1 ? DIST_VALUE_TENSOR : DIST_VALUE_NONE));
          REQUIRE(args[2].tensor().elements() == 16);
          const dist::axis_place place = device.device_axis("row");
          REQUIRE(place.index == device.id() / 2 && place.size == 2);
          REQUIRE((device.device_coordinates() == dist::coordinates{replica.id(), 0, 0, device.id()}));
          int32_t along = device.id();
          device.all_reduce(reduce_op::sum, tensor(&along, {}),
                            {"column", 0, device.device_axis_group("column")});
          REQUIRE(along == (device.id() < 2 ? 1 : 5));
          REQUIRE_ERROR(DIST_INVALID_ARGUMENT, device.device_axis("depth"));
          const std::array<int32_t, 4> tile{device.id(), device.id(), device.id(), device.id()};
          return value(device.strategy(), const_tensor(tile.data(), {2, 2}));
        },
        value::list(owner, {split, at_one, copies}));
    REQUIRE(row_of<int32_t>(sums) == (std::vector<int32_t>{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3}));
  });
}

void what_a_device_throws() {
  const dist::strategy strategy = mesh_of(1);
  const auto throws = [](replica device, const value &) {
    if (device.id() == 2) throw own_error("device 2");
    device.barrier();
  };
  REQUIRE_OWN_ERROR("device 2", strategy.run([&](replica replica) { replica.run_on_devices(throws); }));
  strategy.run([&](replica replica) {
    REQUIRE_OWN_ERROR("device 2", replica.run_on_devices(throws));
    dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
    options.timeout_ns = 60'000'000'000;
    REQUIRE_OWN_ERROR("device 2", replica.run_on_devices(throws, {}, {}, options));
    replica.run_on_devices([](dist::replica device, const value &, const value &) { device.barrier(); });
  });
}

// After the run has returned, its function is kept until the last device has left.
void a_run_on_devices_past_its_deadline() {
  const auto held = std::make_shared<int>(1);
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  {
    const dist::strategy strategy = mesh_of(1);
    strategy.run([&](replica replica) {
      dist_devices_options options = DIST_DEVICES_OPTIONS_INIT;
      options.timeout_ns = 1'000'000;
      const auto waits = [&mutex, &changed, &open, held](dist::replica device, const value &) {
        if (device.id() != 3) return;
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return open; });
      };
      REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, replica.run_on_devices(waits, {}, {}, options));
      {
        const std::lock_guard<std::mutex> lock(mutex);
        open = true;
        changed.notify_all();
      }
      until_they_are_out([&] { replica.run_on_devices([](dist::replica, const value &) {}); });
    });
  }
  assert_int_equal(held.use_count(), 1);
}

void tiles_and_what_surrounds_them() {
  const dist::strategy strategy = mesh_of(1);
  strategy.run([](replica replica) {
    const dist::halo around({D}, {1}, {1}, {DIST_EDGE_WRAP});
    replica.run_on_devices([&](dist::replica device, const value &) {
      const int32_t id = device.id();
      const std::array<int32_t, 2> tile{2 * id, 2 * id + 1};
      std::array<int32_t, 4> wider{};
      device.halo_exchange(tile, around, wider, {"halo"});
      REQUIRE(wider[0] == (2 * id + 7) % 8 && wider[1] == 2 * id && wider[3] == (2 * id + 2) % 8);
      REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::halo({2, 2}, {1}));

      const auto split = dist::partition::split({8}, {D});
      const auto at_two = dist::partition::assign({8}, 2, D);
      std::array<int32_t, 8> whole{};
      if (id == 2)
        device.reshard(split, at_two, tile, whole);
      else
        device.reshard(split, at_two, tile, dist::nothing);
      for (int32_t i = 0; id == 2 && i < 8; ++i) REQUIRE(whole[static_cast<std::size_t>(i)] == i);
    });
    REQUIRE_OWN_ERROR("in a device", replica.run_on_devices([](dist::replica, const value &) {
      throw own_error("in a device");
    }));
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(topologies),
      HPP_TEST(device_assignments),
      HPP_TEST(partitions),
      HPP_TEST(functions_on_devices),
      HPP_TEST(what_a_device_throws),
      HPP_TEST(a_run_on_devices_past_its_deadline),
      HPP_TEST(tiles_and_what_surrounds_them),
  };
  return cmocka_run_group_tests_name("dist.hpp: devices", tests, nullptr, nullptr);
}
