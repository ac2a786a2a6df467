// SPDX-License-Identifier: Apache-2.0
// The C++ interface: destructors release objects, errors are exceptions, and exceptions of the host arrive
// unchanged.
#include <dist/dist.hpp>

#include <setjmp.h>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <numeric>

extern "C" {
#include <cmocka.h>
}

namespace {

constexpr std::size_t R = 3;

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void replicas_sum(void **) {
  const dist::strategy strategy(R);
  assert_int_equal(strategy.num_replicas(), R);
  std::vector<std::vector<float>> data(R, std::vector<float>(5, 0.0F));
  strategy.run([&](dist::replica replica) {
    auto &mine = data[static_cast<std::size_t>(replica.id())];
    std::iota(mine.begin(), mine.end(), static_cast<float>(replica.id()));
    replica.all_reduce(dist::reduce_op::sum, mine, {"gradients", 0});
  });
  for (const auto &sums : data) {
    for (std::size_t i = 0; i < sums.size(); ++i) assert_true(sums[i] == static_cast<float>(3 * i + 3));
  }
}

void lists_and_other_buffers(void **) {
  const dist::strategy strategy(R);
  std::vector<int64_t> sums(R);
  std::vector<double> means(R);
  std::vector<int32_t> roots(R);
  strategy.run([&](dist::replica replica) {
    const auto id = static_cast<std::size_t>(replica.id());
    int64_t a = replica.id() + 1;
    int64_t b[2] = {1, 2};
    replica.all_reduce(dist::reduce_op::sum, {dist::tensor(&a, {}), dist::tensor(b, 2)});
    sums[id] = a * 100 + b[0] * 10 + b[1];
    const int32_t from = replica.id();
    replica.all_reduce(dist::reduce_op::mean, dist::const_tensor(&from, {}), dist::tensor(&means[id], {}));
    roots[id] = replica.id();
    replica.barrier();
    replica.broadcast(2, dist::tensor(&roots[id], {}));
  });
  for (std::size_t r = 0; r < R; ++r) {
    assert_int_equal(sums[r], 636);
    assert_true(means[r] == 1.0);
    assert_int_equal(roots[r], 2);
  }
}

void the_hosts_own_exception_arrives(void **) {
  const dist::strategy strategy(R);
  bool caught = false;
  try {
    strategy.run([](dist::replica replica) {
      if (replica.id() == 1) throw own_error("row 7 is missing");
      replica.barrier();
    });
  } catch (const own_error &failure) {
    caught = std::string(failure.what()) == "row 7 is missing";
  }
  assert_true(caught);
  strategy.run([](dist::replica replica) { replica.barrier(); });
}

void an_error_has_fields(void **) {
  const dist::strategy strategy(2);
  dist_status code = DIST_OK;
  std::string tag;
  int32_t replica_to_blame = -2;
  try {
    strategy.run([](dist::replica replica) {
      std::vector<float> data(replica.id() == 1 ? 4 : 3, 1.0F);
      replica.all_reduce(dist::reduce_op::sum, data, {"loss", 0});
    });
  } catch (const dist::error &failure) {
    code = failure.code();
    tag = failure.tag();
    replica_to_blame = failure.replica();
  }
  assert_int_equal(code, DIST_INVALID_ARGUMENT);
  assert_string_equal(tag.c_str(), "loss");
  assert_int_equal(replica_to_blame, 1);
}

void loops_run_on_the_share_of_cores(void **) {
  const dist::strategy strategy(1);
  std::vector<int> seen(10000);
  strategy.run([&](dist::replica replica) {
    replica.parallel_for(0, static_cast<int64_t>(seen.size()), 100, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    });
  });
  for (const int times : seen) assert_int_equal(times, 1);
}

void values_variables_and_datasets(void **) {
  const dist::strategy strategy(2);
  float parts[2] = {1.5F, 2.5F};
  const dist::value value =
      dist::value::per_replica(strategy, {dist::value(strategy, dist::tensor(&parts[0], {})),
                                          dist::value(strategy, dist::tensor(&parts[1], {}))});
  assert_true(*dist::reduce(strategy, dist::reduce_op::sum, value).tensor().data<float>() == 4.0F);

  const std::vector<double> initial{1, 2};
  const dist::variable variable(strategy, initial, "weights");
  assert_true(variable.component(1).data<double>()[1] == 2.0);

  std::vector<int32_t> rows(10);
  std::iota(rows.begin(), rows.end(), 0);
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = 4;
  const dist::dataset dataset(strategy, {dist::tensor(rows)}, options);
  int64_t elements = 0;
  int batches = 0;
  for (const dist::value &batch : dataset) {
    for (std::size_t r = 0; r < batch.size(); ++r) elements += batch[r].tensor().size(0);
    ++batches;
  }
  assert_int_equal(batches, 3);
  assert_int_equal(elements, 10);
}

void wrong_use_throws(void **) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = -1;
  bool refused = false;
  try {
    const dist::strategy strategy(options);
  } catch (const dist::error &failure) {
    refused = failure.code() == DIST_INVALID_ARGUMENT;
  }
  assert_true(refused);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(replicas_sum),
      cmocka_unit_test(lists_and_other_buffers),
      cmocka_unit_test(the_hosts_own_exception_arrives),
      cmocka_unit_test(an_error_has_fields),
      cmocka_unit_test(loops_run_on_the_share_of_cores),
      cmocka_unit_test(values_variables_and_datasets),
      cmocka_unit_test(wrong_use_throws),
  };
  return cmocka_run_group_tests_name("dist.hpp", tests, nullptr, nullptr);
}
