// SPDX-License-Identifier: Apache-2.0
// Topologies below the C ABI: simulated CPU locations of a host, and lack of memory.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/layout/device_assignment.hpp"
#include "core/layout/host_topology.hpp"
#include "tests/unit/counting_memory.hpp"

extern "C" {
#include <cmocka.h>

#include "tests/skip.h"
#include "tests/unit/plain_error.hpp"
}

namespace dist {
namespace {

using Numbers = std::vector<int32_t>;

Numbers copy(std::span<const int32_t> numbers) { return {numbers.begin(), numbers.end()}; }

void expect(const Numbers& got, const Numbers& wanted) {
  assert_int_equal(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) assert_int_equal(got[i], wanted[i]);
}

Ref<Topology> topology_of(CountingMemory& memory, const std::vector<CpuPlace>& places) {
  Ref<Topology> topology;
  if (!topology_of_places(*memory, places, true, &topology).ok()) fail_msg("%s", last_message());
  return topology;
}

// ---- The host

void cpus_are_ordered_by_place(void**) {
  CountingMemory memory;
  // Two packages of two cores with two threads, as Linux numbers them: first all cores, then all second
  // threads.
  std::vector<CpuPlace> places;
  for (int cpu = 7; cpu >= 0; --cpu)
    places.push_back({cpu, cpu / 2 % 2, cpu / 2 % 2, cpu % 4, 10 * (cpu % 4) + cpu / 4});
  const auto topology = topology_of(memory, places);
  expect(copy(topology->mesh().shape()), {2, 1, 2, 2});
  assert_int_equal(topology->missing().size(), 0);
  assert_int_equal(topology->num_tasks(), 1);
  assert_int_equal(topology->num_devices_per_task(), 8);
  expect({topology->device_coordinates().begin() + 8, topology->device_coordinates().begin() + 16},
         {0, 0, 1, 0, 0, 0, 1, 1});
  const Numbers cpus = {0, 4, 1, 5, 2, 6, 3, 7};
  for (int32_t device = 0; device < 8; ++device) {
    int32_t cpu = -2;
    assert_true(topology->cpu_of({0, device}, &cpu).ok());
    assert_int_equal(cpu, cpus[static_cast<std::size_t>(device)]);
  }
}

void what_is_not_allowed_leaves_no_hole(void**) {
  CountingMemory memory;
  // Three CPUs of a large machine: the second thread of core 9, and both threads of core 30, on package 3.
  const auto topology = topology_of(memory, {{19, 3, 7, 9, 1}, {60, 3, 7, 30, 60}, {61, 3, 7, 30, 61}});
  expect(copy(topology->mesh().shape()), {1, 1, 2, 2});
  assert_int_equal(topology->missing().size(), 1);
  expect(copy(topology->missing()[0]), {0, 0, 0, 1});
  const std::pmr::string text = topology->explain();
  for (const char* words : {"1 x 1 x 2 x 2", "hwloc", "missing: 1 of 4", "device 0: CPU 19, at [0 0 0 0]",
                            "device 2: CPU 61, at [0 0 1 1]"}) {
    if (text.find(words) == text.npos) fail_msg("no '%s' in '%s'", words, text.c_str());
  }
  int32_t cpu = 0;
  assert_true(topology->cpu_of({-1, -1}, &cpu).ok());
  assert_int_equal(cpu, -1);
}

void domains_are_counted_in_their_package(void**) {
  CountingMemory memory;
  const auto topology = topology_of(
      memory, {{0, 0, 0, 0, 0}, {1, 0, 1, 1, 1}, {2, 1, 2, 2, 2}, {3, 1, 3, 3, 3}, {4, 1, 3, 4, 4}});
  expect(copy(topology->mesh().shape()), {2, 2, 2, 1});
  expect(copy(topology->device_coordinates()), {0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0});
}

void the_host_itself_is_found(void**) {
  CountingMemory memory;
  Ref<Topology> topology;
  assert_true(topology_from_host(*memory, &topology).ok());
  assert_int_equal(topology->num_devices_per_task(), allowed_cpus());
  assert_true(topology->mesh().positions() >= static_cast<std::size_t>(allowed_cpus()));
}

// hwloc takes a made-up machine from the environment: 2 packages of 2 domains of 128 cores of 2 threads.
void places_are_hwlocs(void**) {
  assert_int_equal(setenv("HWLOC_SYNTHETIC", "pack:2 numa:2 core:128 pu:2", 1), 0);
  std::vector<CpuPlace> places(static_cast<std::size_t>(allowed_cpus()));
  bool by_hwloc = false;
  const int n = cpu_places(cpus_of_this_thread(), places.data(), allowed_cpus(), &by_hwloc);
  unsetenv("HWLOC_SYNTHETIC");
  if (!by_hwloc) skip_because("libdist is built without hwloc");
  assert_int_equal(n, allowed_cpus());
  for (const CpuPlace& place : places) {
    assert_int_equal(place.package, place.cpu / 512);
    assert_int_equal(place.numa, place.cpu / 256);
    assert_int_equal(place.core, place.cpu / 2);
  }
  CountingMemory memory;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const auto topology = topology_of(memory, {places[i], places[i - 1]});
    const bool neighbours = places[i].core == places[i - 1].core;
    const Coordinates& shape = topology->mesh().shape();
    if (neighbours) assert_int_equal(shape[3], 2);
    assert_int_equal(shape[0] * shape[1] * shape[2] * shape[3] > 1, 1);
  }
}

void without_hwloc_it_says_so(void**) {
  CountingMemory memory;
  Ref<Topology> topology;
  const std::vector<CpuPlace> flat = {{5, 0, 0, 5, 0}, {2, 0, 0, 2, 0}};
  assert_true(topology_of_places(*memory, flat, false, &topology).ok());
  expect(copy(topology->mesh().shape()), {1, 1, 2, 1});
  if (topology->explain().find("packages and caches are unknown") == std::string::npos)
    fail_msg("%s", topology->explain().c_str());
}

// ---- Memory

Status make_all(Memory& memory) {
  const Numbers mesh = {4, 2, 1, 2};
  Numbers coordinates;
  Mesh shape;
  DIST_TRY(Mesh::make(mesh, &shape));
  for (std::size_t i = 0; i < shape.positions(); ++i) {
    const Coordinates at = shape.coordinates_of(i);
    coordinates.insert(coordinates.end(), at.begin(), at.end());
  }
  Ref<Topology> topology;
  Ref<Topology> again;
  DIST_TRY(Topology::create(memory, mesh, coordinates.data(), 2, 8, &topology));
  DIST_TRY(Topology::create(memory, mesh, topology->device_coordinates().data(), 2, 8, &again));
  if (again->explain().empty()) return invalid_argument("no words");
  DIST_TRY(Topology::create(memory, mesh, coordinates.data(), 1, 8, &topology));  // one half is missing
  const Numbers block = {2, 1, 1, 2};
  for (const auto& on : {topology, again}) {
    for (const dist_device_order order : {DIST_DEVICE_ORDER_AUTO, DIST_DEVICE_ORDER_MESH}) {
      Ref<DeviceAssignment> assignment;
      DIST_TRY(build_assignment(on, {block, {}, on->missing().empty() ? 4 : 2, order}, &assignment));
    }
  }
  return kOk;
}

void every_request_for_memory_may_fail(void**) {
  long k = 0;
  for (bool refused = true; refused; ++k) {
    CountingMemory memory;
    memory.refuse(k);
    Status status;
    try {
      status = make_all(*memory);
    } catch (const std::bad_alloc&) {
      status = out_of_memory();
    }
    refused = memory.refused();
    assert_int_equal(status.code(), refused ? DIST_RESOURCE_EXHAUSTED : DIST_OK);
    assert_int_equal(memory.live(), 0);
    assert_int_equal(memory.mistakes(), 0);
  }
  assert_true(k > 20);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(cpus_are_ordered_by_place),
      cmocka_unit_test(what_is_not_allowed_leaves_no_hole),
      cmocka_unit_test(domains_are_counted_in_their_package),
      cmocka_unit_test(the_host_itself_is_found),
      cmocka_unit_test(places_are_hwlocs),
      cmocka_unit_test(without_hwloc_it_says_so),
      cmocka_unit_test(every_request_for_memory_may_fail),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
