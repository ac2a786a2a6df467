// SPDX-License-Identifier: Apache-2.0
//
// devices.c in C++: one replica with 2 x 2 logical devices. A matrix is split over them, and each row of devices adds
// up its tiles.
//
//     c++ -std=c++17 devices.cpp $(pkg-config --cflags --libs dist) -o devices && ./devices
#include <cstdio>
#include <dist/dist.hpp>
#include <numeric>

// Runs on each device at the same time. args is the list (this device's tile), a view with strides.
dist::value add_rows(dist::replica device, const dist::value &args) {
  const dist::value value = args[0];
  const dist::const_tensor tile = value.tensor();
  const dist_tensor view = tile.get();
  double sum = 0;
  for (int64_t i = 0; i < view.shape[0]; i++) {
    for (int64_t k = 0; k < view.shape[1]; k++) {
      sum += static_cast<const double *>(view.data)[i * view.strides[0] + k * view.strides[1]];
    }
  }
  std::printf("device %d in row %d, column %d: %g\n", device.id(), device.device_axis("row").index,
              device.device_axis("column").index, sum);
  dist::collective_options options;
  options.group = device.device_axis_group("column");  // the devices of a row differ in their column
  const dist::tensor total(&sum, {1, 1});
  device.all_reduce(dist::reduce_op::sum, total, options);
  return {device.strategy(), total};
}

int main() {
  try {
    // Four devices in a line; topology::from_host() would return the CPUs of this machine.
    const std::vector<int32_t> line{4, 1, 1, 1};
    const dist::topology topology(line, {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}, 1, 4);
    const auto assignment = dist::device_assignment::build(topology, line, 1);
    const dist_mesh_axis axes[] = {{"row", 2}, {"column", 2}};
    dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
    mesh.device_assignment = assignment.get();
    mesh.axes = axes;
    mesh.num_axes = 2;
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_MESH;
    options.mesh = &mesh;
    const dist::strategy strategy(options);

    std::vector<double> numbers(16);
    std::iota(numbers.begin(), numbers.end(), 0);
    const dist::value matrix(strategy, dist::const_tensor(numbers.data(), {4, 4}));
    const dist::value result = strategy.run_values(
        [](dist::replica replica, const dist::value &args) {  // splits the matrix, and joins the results
          return replica.run_on_devices(add_rows, replica.split_to_logical_devices(args[0], {2, 2}));
        },
        matrix);
    const double *sums = result.tensor().data<double>();  // the tiles of all devices together
    std::printf("result: [[%g, %g], [%g, %g]]\n", sums[0], sums[1], sums[2], sums[3]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "devices: %s\n", error.what());
    return 1;
  }
  return 0;
}
