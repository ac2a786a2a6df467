// SPDX-License-Identifier: Apache-2.0
// Area "tpu_device_assignment": topologies from coordinates and from bytes, built and explicit assignments,
// and queries on them.
#include <algorithm>
#include <array>

#include "programs.hpp"

namespace golden {
namespace {

using Topology = Handle<dist_topology, dist_topology_destroy>;
using Assignment = Handle<dist_device_assignment, dist_device_assignment_destroy>;
using Numbers = std::vector<int32_t>;

constexpr std::size_t kRank = 4;

// ---- Reading inputs

// NULL is an empty array with a NULL pointer. Python also accepts 2.0 for an int32.
Numbers numbers_of(const Json& json) {
  Numbers numbers;
  if (json.IsNull()) return numbers;
  for (const Json& one : json.GetArray()) numbers.push_back(static_cast<int32_t>(one.GetDouble()));
  return numbers;
}
const int32_t* pointer_of(const Json& json, const Numbers& numbers) {
  static constexpr int32_t kNothing = 0;
  if (json.IsNull()) return nullptr;
  return numbers.empty() ? &kNothing : numbers.data();
}

// A flat array with three dimensions.
struct Cube {
  int32_t outer = 0;
  int32_t inner = 1;
  std::size_t minor = kRank;
  Numbers numbers;
};

// Returns false if the number of dimensions differs, which C's arguments cannot express.
bool read_cube(const Json& json, Cube* out) {
  out->outer = static_cast<int32_t>(json.Size());
  for (const Json& row : json.GetArray()) {
    if (!row.IsArray()) return false;
    out->inner = static_cast<int32_t>(row.Size());
    for (const Json& entry : row.GetArray()) {
      if (!entry.IsArray()) return false;
      out->minor = entry.Size();
      for (const Json& number : entry.GetArray()) out->numbers.push_back(number.GetInt());
    }
  }
  return true;
}

Topology topology_of(const Numbers& mesh, const Cube& devices) {
  Topology topology;
  check(dist_topology_create(mesh.data(), mesh.size(), devices.numbers.data(), devices.outer, devices.inner,
                             nullptr, topology.out()));
  return topology;
}

// ---- Writing answers

Json array_of(Replay& replay, const int32_t* numbers, std::size_t n) {
  std::vector<Json> items;
  for (std::size_t i = 0; i < n; ++i) items.push_back(replay.json(numbers[i]));
  return replay.array(std::move(items));
}
Json rows_of(Replay& replay, const int32_t* numbers, std::size_t n) {
  std::vector<Json> rows;
  for (std::size_t i = 0; i < n; ++i) rows.push_back(array_of(replay, numbers + i * kRank, kRank));
  return replay.array(std::move(rows));
}
Json cube_of(Replay& replay, const int32_t* numbers, int32_t outer, int32_t inner) {
  std::vector<Json> slabs;
  const auto row = static_cast<std::size_t>(inner);
  for (std::size_t i = 0; i < static_cast<std::size_t>(outer); ++i)
    slabs.push_back(rows_of(replay, numbers + i * row * kRank, row));
  return replay.array(std::move(slabs));
}

Json missing_of(Replay& replay, const Topology& topology) {
  return rows_of(replay, dist_topology_missing_devices(topology.get()),
                 dist_topology_num_missing_devices(topology.get()));
}
Json coordinates_of(Replay& replay, const Topology& topology) {
  return cube_of(replay, dist_topology_device_coordinates(topology.get()),
                 dist_topology_num_tasks(topology.get()), dist_topology_num_devices_per_task(topology.get()));
}
Json mesh_of(Replay& replay, const Topology& topology) {
  return array_of(replay, dist_topology_mesh_shape(topology.get()),
                  static_cast<std::size_t>(dist_topology_mesh_rank(topology.get())));
}
Json cores_of(Replay& replay, const Assignment& assignment) {
  return cube_of(replay, dist_device_assignment_core_assignment(assignment.get()),
                 dist_device_assignment_num_replicas(assignment.get()),
                 dist_device_assignment_num_logical_devices(assignment.get()));
}

// Returns the name that a function writes into a buffer.
template <class Write>
Json name(Replay& replay, Write&& write) {
  char text[256];
  check(write(text, sizeof text));
  return replay.json(text);
}

// ---- Topologies

Json position(Replay& replay, const dist_topology* topology, const std::array<int32_t, kRank>& at) {
  int32_t task = 0;
  int32_t device = 0;
  check(dist_topology_task_at(topology, at.data(), &task));
  check(dist_topology_device_at(topology, at.data(), &device));
  const auto named = [&](auto* of, const char* job) {
    return name(replay,
                [&](char* text, std::size_t size) { return of(topology, at.data(), job, text, size); });
  };
  Members members(replay);
  members.add("coordinates", array_of(replay, at.data(), kRank));
  members.add("task_ordinal", replay.json(task));
  members.add("tpu_device_ordinal", replay.json(device));
  members.add("cpu_device_name", named(dist_topology_host_name_at, nullptr));
  members.add("tpu_device_name", named(dist_topology_device_name_at, nullptr));
  members.add("tpu_device_name_job_worker", named(dist_topology_device_name_at, "worker"));
  return members.take();
}

// The recorded program looks at the first 16 positions.
Json positions(Replay& replay, const Topology& topology, const Numbers& mesh) {
  constexpr int32_t kMost = 16;
  std::vector<Json> all;
  const int32_t n = std::min(kMost, mesh[0] * mesh[1] * mesh[2] * mesh[3]);
  for (int32_t i = 0; i < n; ++i) {
    all.push_back(position(replay, topology.get(),
                           {i / (mesh[3] * mesh[2] * mesh[1]), i / (mesh[3] * mesh[2]) % mesh[1],
                            i / mesh[3] % mesh[2], i % mesh[3]}));
  }
  return replay.array(std::move(all));
}

void topology(Replay& replay) {
  const Numbers mesh = numbers_of(replay.input("mesh_shape"));
  Cube devices;
  if (!read_cube(replay.input("device_coordinates"), &devices)) return;
  const Topology made = topology_of(mesh, devices);
  replay.record("mesh_shape", mesh_of(replay, made));
  replay.record("mesh_rank", replay.json(dist_topology_mesh_rank(made.get())));
  replay.record("num_tasks", replay.json(dist_topology_num_tasks(made.get())));
  replay.record("num_tpus_per_task", replay.json(dist_topology_num_devices_per_task(made.get())));
  replay.record("missing_devices", missing_of(replay, made));
  replay.record("at", positions(replay, made, mesh));
}

// Deliberately wrong topologies. Those that C's arguments cannot express record nothing, and differences.md
// lists them.
void topology_bad(Replay& replay) {
  if (replay.has("serialized_hex")) return;  // only libdist.tf has topologies as bytes
  const Json& mesh_json = replay.input("mesh_shape");
  const Json& devices_json = replay.input("device_coordinates");
  const Numbers mesh = numbers_of(mesh_json);
  Cube devices{1, 1, kRank, {}};
  const bool none = devices_json.IsNull();
  if (!none && !read_cube(devices_json, &devices)) return;
  if (!mesh_json.IsNull() && devices.minor != mesh.size()) return;
  Topology made;
  check(dist_topology_create(pointer_of(mesh_json, mesh), mesh.size(),
                             none ? nullptr : devices.numbers.data(), devices.outer, devices.inner, nullptr,
                             made.out()));
  replay.record("missing_devices", missing_of(replay, made));
  replay.record("num_tasks", replay.json(dist_topology_num_tasks(made.get())));
}

// ---- Assignments that are built

// Accepts an enumerator's name, or its number in TensorFlow as a string or a number. TensorFlow treats other
// numbers as MESH.
dist_device_order device_order(Replay& replay, const Json& mode) {
  if (mode.IsInt() && (mode.GetInt() < 0 || mode.GetInt() > 2)) return DIST_DEVICE_ORDER_MESH;
  const std::string text = mode.IsInt() ? std::to_string(mode.GetInt()) : std::string(text_of(mode));
  if (text == "AUTO" || text == "0") return DIST_DEVICE_ORDER_AUTO;
  if (text == "RING" || text == "1") return DIST_DEVICE_ORDER_RING;
  if (text == "MESH" || text == "2") return DIST_DEVICE_ORDER_MESH;
  replay.unknown("a device order called " + text);
}

// A number in place of an array counts as an array without dimensions.
Assignment build(Replay& replay, const Topology& topology, const Json& shape_json, const Json& stride_json,
                 int32_t num_replicas, dist_device_order order) {
  const bool scalar = shape_json.IsNumber();
  const Numbers shape = scalar ? Numbers{shape_json.GetInt()} : numbers_of(shape_json);
  const Numbers stride = numbers_of(stride_json);
  const std::size_t rank = scalar ? 0 : shape_json.IsNull() ? stride.size() : shape.size();
  if (!shape.empty() && !stride.empty() && shape.size() != stride.size()) replay.unknown("mixed ranks");
  Assignment made;
  check(dist_device_assignment_build(topology.get(), pointer_of(shape_json, shape),
                                     pointer_of(stride_json, stride), rank, num_replicas, order, made.out()));
  return made;
}

Json one_device(Replay& replay, const dist_device_assignment* made, int32_t replica, int32_t core) {
  int32_t at[kRank];
  int32_t device = 0;
  check(dist_device_assignment_coordinates(made, replica, core, at));
  check(dist_device_assignment_device(made, replica, core, &device));
  const auto named = [&](auto* of, const char* job) {
    return name(replay,
                [&](char* text, std::size_t size) { return of(made, replica, core, job, text, size); });
  };
  Members members(replay);
  members.add("replica", replay.json(replica));
  members.add("logical_core", replay.json(core));
  members.add("coordinates", array_of(replay, at, kRank));
  members.add("tpu_ordinal", replay.json(device));
  members.add("host_device", named(dist_device_assignment_host_name, nullptr));
  members.add("tpu_device", named(dist_device_assignment_device_name, nullptr));
  members.add("tpu_device_job_worker", named(dist_device_assignment_device_name, "worker"));
  members.add("host_device_job_worker", named(dist_device_assignment_host_name, "worker"));
  return members.take();
}

Json replicas_of(Replay& replay, const dist_device_assignment* made, int32_t task, int32_t core) {
  return replay.attempt([&] {
    std::size_t n = 0;
    check(dist_device_assignment_lookup_replicas(made, task, core, nullptr, 0, &n));
    Numbers replicas(n);
    check(dist_device_assignment_lookup_replicas(made, task, core, replicas.data(), n, &n));
    return array_of(replay, replicas.data(), n);
  });
}

// The recorded program reads details of small assignments, and of the first few replicas, tasks and cores.
void record_details(Replay& replay, const Topology& topology, const dist_device_assignment* made) {
  const int32_t replicas = dist_device_assignment_num_replicas(made);
  const int32_t cores = dist_device_assignment_num_logical_devices(made);
  std::vector<Json> lookup;
  std::vector<Json> lookup_replicas;
  for (int32_t r = 0; r < std::min(replicas, 4); ++r) {
    for (int32_t c = 0; c < std::min(cores, 8); ++c) lookup.push_back(one_device(replay, made, r, c));
  }
  for (int32_t task = 0; task <= std::min(dist_topology_num_tasks(topology.get()), 4); ++task) {
    for (int32_t c = 0; c <= std::min(cores, 4); ++c) {
      Members one(replay);
      one.add("task_id", replay.json(task)).add("logical_core", replay.json(c));
      one.add("result", replicas_of(replay, made, task, c));
      lookup_replicas.push_back(one.take());
    }
  }
  replay.record("lookup", replay.array(std::move(lookup)));
  replay.record("lookup_replicas", replay.array(std::move(lookup_replicas)));
}

int64_t devices_of(const Json& shape) {
  int64_t product = 1;
  for (const int32_t size : numbers_of(shape)) product *= size;
  return product;
}

void build_case(Replay& replay, bool strided) {
  const Json& shape = replay.input("computation_shape");
  const int32_t n = replay.input("num_replicas").GetInt();
  const dist_device_order order = device_order(replay, replay.input("device_order_mode"));
  Cube devices;
  if (!read_cube(replay.input("device_coordinates"), &devices)) replay.unknown("such a topology");
  const Topology topology = topology_of(numbers_of(replay.input("mesh_shape")), devices);
  const Assignment made = build(replay, topology, shape, replay.input("computation_stride"), n, order);
  replay.record("num_replicas", replay.json(dist_device_assignment_num_replicas(made.get())));
  replay.record("num_cores_per_replica", replay.json(dist_device_assignment_num_logical_devices(made.get())));
  replay.record("core_assignment", cores_of(replay, made));
  constexpr int64_t kSmall = 8;
  if (!strided && order == DIST_DEVICE_ORDER_AUTO && devices_of(shape) * n <= kSmall)
    record_details(replay, topology, made.get());
}
void build_plain(Replay& replay) { build_case(replay, false); }
void build_strided(Replay& replay) { build_case(replay, true); }

// The topology of cases that name none: all devices belong to one task.
Topology full_topology(const Numbers& mesh) {
  Cube devices{1, 0, kRank, {}};
  for (int32_t z = 0; z < mesh[2]; ++z) {
    for (int32_t y = 0; y < mesh[1]; ++y) {
      for (int32_t x = 0; x < mesh[0]; ++x) {
        for (int32_t core = 0; core < mesh[3]; ++core, ++devices.inner)
          devices.numbers.insert(devices.numbers.end(), {x, y, z, core});
      }
    }
  }
  return topology_of(mesh, devices);
}

void build_special(Replay& replay) {
  if (replay.has("topology") || replay.has("topology_serialized_hex"))
    return;  // a string or bytes instead of a topology
  const Json null;
  const Topology topology = full_topology(numbers_of(replay.input("mesh_shape")));
  const auto argument = [&](const char* key) -> const Json& {
    const Json* const found = find(replay.input("kwargs"), key);
    return found == nullptr ? null : *found;
  };
  const Json& n = argument("num_replicas");
  const Json& order = argument("device_order_mode");
  const Assignment made = build(replay, topology, argument("computation_shape"),
                                argument("computation_stride"), n.IsNull() ? 1 : n.GetInt(),
                                order.IsNull() ? DIST_DEVICE_ORDER_AUTO : device_order(replay, order));
  replay.record("core_assignment", cores_of(replay, made));
}

// The device order of a single replica that covers a whole mesh of chips with one core.
void ring(Replay& replay) {
  const auto size = [&](const char* axis) { return replay.input(axis).GetInt(); };
  const Numbers mesh = {size("x"), size("y"), size("z"), 1};
  Assignment made;
  check(dist_device_assignment_build(full_topology(mesh).get(), mesh.data(), nullptr, kRank, 1,
                                     DIST_DEVICE_ORDER_RING, made.out()));
  const int32_t* const cores = dist_device_assignment_core_assignment(made.get());
  std::vector<Json> order;
  for (int32_t i = 0; i < dist_device_assignment_num_logical_devices(made.get()); ++i)
    order.push_back(array_of(replay, cores + static_cast<std::size_t>(i) * kRank, 3));
  replay.record("order", replay.array(std::move(order)));
}

// ---- Explicit assignments

void constructor(Replay& replay) {
  Cube cores;
  if (replay.has("topology") || !read_cube(replay.input("core_assignment"), &cores)) return;
  const Topology topology = full_topology(numbers_of(replay.input("mesh_shape")));
  Assignment made;
  check(dist_device_assignment_create(topology.get(), cores.numbers.data(), cores.outer, cores.inner,
                                      cores.minor, made.out()));
  replay.record("num_replicas", replay.json(dist_device_assignment_num_replicas(made.get())));
  replay.record("num_cores_per_replica", replay.json(dist_device_assignment_num_logical_devices(made.get())));
  replay.record("lookup_replicas_0_0", replicas_of(replay, made.get(), 0, 0));
}

void coordinates(Replay& replay) {
  Cube cores;
  if (!read_cube(replay.input("core_assignment"), &cores)) replay.unknown("such an assignment");
  Assignment made;
  check(dist_device_assignment_create(full_topology({2, 2, 1, 2}).get(), cores.numbers.data(), cores.outer,
                                      cores.inner, cores.minor, made.out()));
  const int32_t replica = replay.input("replica").GetInt();
  const int32_t core = replay.input("logical_core").GetInt();
  int32_t at[kRank];
  check(dist_device_assignment_coordinates(made.get(), replica, core, at));
  replay.record("coordinates", array_of(replay, at, kRank));
  replay.record("tpu_device", name(replay, [&](char* text, std::size_t size) {
                  return dist_device_assignment_device_name(made.get(), replica, core, nullptr, text, size);
                }));
}

void single_core(Replay& replay) {
  Assignment made;
  check(dist_device_assignment_create_single(full_topology({1, 1, 1, 1}).get(), made.out()));
  const int32_t* const at = dist_device_assignment_core_assignment(made.get());
  replay.record("equal", replay.json(std::count(at, at + kRank, 0) == static_cast<int>(kRank)));
  replay.record("SINGLE_CORE_ASSIGNMENT", cores_of(replay, made));
}

void order_values(Replay& replay) {
  replay.record("AUTO", replay.json(int32_t{DIST_DEVICE_ORDER_AUTO}));
  replay.record("RING", replay.json(int32_t{DIST_DEVICE_ORDER_RING}));
  replay.record("MESH", replay.json(int32_t{DIST_DEVICE_ORDER_MESH}));
}

struct Program {
  std::string_view id;  // the beginning of the ids
  void (*play)(Replay& replay);
};
constexpr Program kPrograms[] = {
    {"topology/", topology},
    {"topology_bad/", topology_bad},
    {"topology_serialized/", [](Replay&) {}},
    {"build/", build_plain},
    {"build_stride/", build_strided},
    {"build_special/", build_special},
    {"ring_3d/", ring},
    {"constructor/", constructor},
    {"coordinates/", coordinates},
    {"single_core_assignment", single_core},
    {"device_order_mode_values", order_values},
};

}  // namespace

void replay_tpu_device_assignment(Replay& replay) {
  for (const Program& program : kPrograms) {
    if (replay.id().starts_with(program.id)) return program.play(replay);
  }
  replay.unknown("program");
}

}  // namespace golden
