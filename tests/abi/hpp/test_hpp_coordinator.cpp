// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: servers and their coordinator. Without libdist-grpc.so, only the parts that do not need it.
#include <dist/experimental/coordinator.hpp>
#include <dist/experimental/rpc.hpp>
#include <dist/experimental/server.hpp>
#include "hpp_support.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using dist::closure;
using dist::coordinator;
using dist::server;
using dist::value;

dist::strategy_ref here() { return dist::get_strategy(); }

value number(float of) { return value(here(), dist::const_tensor(&of, {})); }

float number_of(const value &given) { return *static_cast<const float *>(given.tensor().get().data); }

void servers_begin_and_end() {
  auto counted = std::make_shared<int>(0);
  {
    server first = server::local();
    first.add("count", [counted](const closure &, const value &given) { return given; });
    first.add_update("keep", [counted](std::vector<dist::tensor> &, const value &) {});
    server moved = std::move(first);
    REQUIRE_ERROR(DIST_ALREADY_EXISTS,
                  moved.add("count", [](const closure &, const value &given) { return given; }));
    assert_int_equal(counted.use_count(), 3);
    assert_string_equal(moved.target().c_str(), "grpc://127.0.0.1:0");
    assert_true(moved.get() != nullptr);
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, moved.join(0));
    dist_server_options options = DIST_SERVER_OPTIONS_INIT;
    options.num_threads = -1;
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, server(options));
    const auto spec = dist::cluster_spec::from_json(R"({"ps": ["127.0.0.1:1"]})");
    server of_cluster(spec, "ps", 0);
    of_cluster.stop();
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, server(spec, "ps", 1));
  }
  assert_int_equal(counted.use_count(), 1);
  unsetenv("TF_CONFIG");
  REQUIRE_ERROR(DIST_INVALID_ARGUMENT, server());
}

// A parameter server and a worker with the functions of the test.
struct servers {
  server ps = server::local();
  server worker = server::local();
  std::atomic<bool> inside{false};
  dist::strategy strategy{1};

  servers() {
    worker.add("add", [](const closure &of, const value &given) {
      of.assign("v", DIST_ASSIGN_ADD, given);
      return number(number_of(of.read("v")) + static_cast<float>(of.id()));
    });
    worker.add("fail", [](const closure &of, const value &) -> value {
      if (std::string(of.name()) != "fail" || of.get() == nullptr) throw std::runtime_error("its name");
      throw dist::error(DIST_OUT_OF_RANGE, "no row 7");
    });
    worker.add("wait", [this](const closure &of, const value &) {
      inside = true;
      while (!of.cancelled()) std::this_thread::yield();
      return value();
    });
    worker.add("make", [](const closure &of, const value &) {
      return value::object(here(), std::make_unique<int32_t>(40 + of.worker()));
    });
    worker.add("use", [](const closure &of, const value &) {
      const value own = of.per_worker("own");
      return number(static_cast<float>(*own.object<int32_t>()));
    });
    worker.add("rows", [](const closure &of, const value &indices) {
      const value rows = of.read_rows("table", indices);
      of.scatter("table", DIST_SCATTER_ADD,
                 value::composite(here(), DIST_VALUE_INDEXED_SLICES, {rows, indices, value::none(here())}));
      of.update("twice", {"v"});
      return rows;
    });
    ps.add_update("twice", [](std::vector<dist::tensor> &variables, const value &) {
      *variables.at(0).data<float>() *= 2;
    });
    ps.add_update("refuse",
                  [](std::vector<dist::tensor> &, const value &) { throw dist::error(DIST_ABORTED, "no"); });
    ps.start();
    worker.start();
    const auto spec = dist::cluster_spec::from_jobs(
        {{"ps", {ps.target().substr(7)}, {}}, {"worker", {worker.target().substr(7)}, {}}});
    const auto resolver = dist::cluster_resolver::simple(spec);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    dist_worker_options of_cluster = DIST_WORKER_OPTIONS_INIT;
    options.worker = &of_cluster;
    options.kind = DIST_STRATEGY_PARAMETER_SERVER;
    of_cluster.cluster_resolver = resolver.get();
    strategy = dist::strategy(options);
  }
};

void closures_run() {
  if (!HAS_GRPC) return;
  servers all;
  {
    coordinator made(all.strategy);
    const coordinator chief = std::move(made);
    const float one = 1;
    chief.create_variable("v", dist::const_tensor(&one, {}));
    dist::remote_value first = chief.schedule("add", number(2));
    assert_true(number_of(first.fetch()) == 1);
    assert_true(number_of(chief.schedule("add", number(3)).fetch()) == 4);
    chief.join();
    assert_true(chief.done());
    assert_true(number_of(chief.read("v")) == 6);
    chief.assign("v", DIST_ASSIGN, number(5));
    chief.update("twice", {"v"});
    assert_true(number_of(chief.read("v")) == 10);
    REQUIRE_ERROR(DIST_ABORTED, chief.update("refuse", {"v"}));
    dist::remote_value bad = chief.schedule("fail");
    REQUIRE_ERROR(DIST_OUT_OF_RANGE, bad.fetch());
    REQUIRE_ERROR(DIST_OUT_OF_RANGE, chief.join());
    chief.create_per_worker("own", "make");
    assert_true(number_of(chief.schedule("use").fetch()) == 40);
    chief.join();
    const dist_coordinator_stats stats = chief.stats();
    assert_int_equal(stats.scheduled, 4);
    assert_int_equal(stats.failed, 1);
    assert_true(chief.write_trace().find("\"worker 0\"") != std::string::npos);
    assert_true(all.worker.write_trace().find("\"libdist worker 0\"") != std::string::npos);
    chief.schedule("wait");
    while (!all.inside) std::this_thread::yield();
    const dist::cancel enough;
    enough.signal("enough");
    REQUIRE_ERROR(DIST_CANCELLED, chief.join(-1, &enough));
    REQUIRE_ERROR(DIST_DEADLINE_EXCEEDED, chief.join(1000));
    dist_schedule_options options = DIST_SCHEDULE_OPTIONS_INIT;
    const dist::remote_value waiting = chief.schedule("use", {}, &options);
    assert_true(!waiting.ready());
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, coordinator(here()));
  }
  all.ps.join();
  all.worker.join();
}

void variables_are_divided() {
  if (!HAS_GRPC) return;
  servers all;
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  const coordinator chief(all.strategy, options, [](const std::vector<int64_t> &shape, dist_dtype dtype) {
    if (dtype == DIST_I32) throw dist::error(DIST_UNIMPLEMENTED, "no i32");
    return dist::fixed_shards(shape, 0, 2);
  });
  assert_true(chief.get() != nullptr);
  const std::vector<float> data{0, 1, 2, 3, 4, 5};
  chief.create_variable("table", dist::const_tensor(data.data(), {3, 2}));
  const int32_t none = 0;
  REQUIRE_ERROR(DIST_UNIMPLEMENTED, chief.create_variable("whole", dist::const_tensor(&none, {1})));
  dist::ps_variable_options beside;
  beside.colocate_with = "table";
  chief.create_variable("beside", dist::const_tensor(data.data(), {3}), beside);
  chief.create_variable("v", dist::const_tensor(data.data() + 1, {}));
  const dist::ps_variable table = chief.variable("table");
  assert_int_equal(table.dtype, DIST_F32);
  assert_int_equal(table.shape.at(1), 2);
  assert_int_equal(table.parts.size(), 2);
  assert_int_equal(table.parts[1].begin, 2);
  assert_int_equal(table.parts[0].rows, 2);
  assert_string_equal(table.parts[0].device.c_str(), "/job:ps/replica:0/task:0/device:CPU:0");
  assert_true(chief.variables() == (std::vector<std::string>{"table", "beside", "v"}));
  const std::vector<int32_t> which{2, 0};
  const value indices(here(), dist::const_tensor(which));
  const value rows = chief.schedule("rows", indices).fetch();
  assert_true(static_cast<const float *>(rows.tensor().get().data)[0] == 4);
  chief.join();
  chief.scatter("table", DIST_SCATTER_SUB,
                value::composite(here(), DIST_VALUE_INDEXED_SLICES, {rows, indices, value::none(here())}));
  assert_true(static_cast<const float *>(chief.read_rows("table", indices).tensor().get().data)[1] == 5);
  const std::string path = "/tmp/dist-hpp-coordinator-" + std::to_string(getpid());
  chief.save(path);
  REQUIRE_ERROR(DIST_FAILED_PRECONDITION, chief.restore(path));
  std::remove(path.c_str());
  assert_int_equal(chief.read(std::vector<std::string>{"v", "table"}).size(), 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(servers_begin_and_end),
      HPP_TEST(closures_run),
      HPP_TEST(variables_are_divided),
  };
  return cmocka_run_group_tests_name("dist.hpp: servers and their coordinator", tests, nullptr, nullptr);
}
