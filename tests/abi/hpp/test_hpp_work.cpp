// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: asynchronous and planned work, fused optimizer steps, and merge calls.
#include "hpp_support.hpp"

namespace {

constexpr int32_t R = 3;
using dist::reduce_op;
using dist::replica;
using dist::tensor;

void work_is_begun_and_waited_for() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    const int32_t id = replica.id();
    std::vector<int32_t> sums{id, 1}, part{id}, all(R);
    dist::work reducing = replica.begin().all_reduce(reduce_op::sum, sums, {"sums"});
    const dist::work gathering = replica.begin().all_gather(part, all);
    const dist::work meeting = replica.begin().barrier();
    REQUIRE(reducing.get() != nullptr);
    gathering.wait();
    reducing.wait(-1);
    meeting.wait();
    REQUIRE(reducing.test());
    REQUIRE(sums == (std::vector<int32_t>{3, R}));
    REQUIRE(all == (std::vector<int32_t>{0, 1, 2}));
    reducing = replica.begin().all_reduce(reduce_op::max, sums);
    while (!reducing.test()) {
    }
  });
}

void one_of_several() {
  const dist::strategy strategy(R);
  strategy.run([](replica replica) {
    std::vector<int64_t> first(2, 1), second(3, 2);
    std::vector<dist::work> works;
    works.push_back(replica.begin().all_reduce(reduce_op::sum, first));
    works.push_back(replica.begin().broadcast(1, second));
    const std::size_t done = dist::wait_any(works, -1);
    REQUIRE(done < 2 && works[done].test());
    works[1 - done].wait();
    REQUIRE(first[1] == R && second[2] == 2);
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, dist::wait_any({}));
  });
}

void a_plan_runs_in_rounds() {
  const dist::strategy strategy(2);
  strategy.run([](replica replica) {
    std::array<float, 4> kernel{};
    std::array<float, 2> bias{};
    dist::collective_options options;
    options.bytes_per_pack = 8;
    const dist::plan plan =
        replica.plan().all_reduce(reduce_op::sum, {tensor(kernel), tensor(bias)}, options);
    for (int step = 1; step <= 3; ++step) {
      kernel.fill(static_cast<float>(step));
      bias.fill(static_cast<float>(replica.id()));
      plan.ready(1);
      plan.ready(0);
      plan.wait();
      REQUIRE(kernel[3] == static_cast<float>(2 * step) && bias[1] == 1);
    }
    plan.start();
    REQUIRE_ERROR(DIST_FAILED_PRECONDITION, plan.start());
    plan.wait();
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT, plan.ready(2));
    const dist::work begun = replica.begin().barrier();
    begun.wait();
  });
}

void cancelled_work_ends_everywhere() {
  const dist::strategy strategy(2);
  const auto cancels = [](replica replica) {
    std::array<int32_t, 1> number{};
    const dist::work working = replica.begin().all_reduce(reduce_op::sum, number);
    if (replica.id() == 0) working.cancel();
    // It may have completed before the cancellation. Then this call detects it.
    working.wait();
    replica.barrier();
    throw dist::error(DIST_CANCELLED, "too late to be cancelled");
  };
  REQUIRE_ERROR(DIST_CANCELLED, strategy.run(cancels));
  strategy.run([](replica replica) { replica.barrier(); });
}

// Unwinding waits for a work in progress, whose tensors are declared before it.
void an_exception_past_work_under_way() {
  const dist::strategy strategy(2);
  const auto throws = [](replica replica) {
    std::vector<float> data(100000, 1);
    const dist::work working = replica.begin().all_reduce(reduce_op::sum, data);
    if (replica.id() == 1) throw own_error("in the middle of it");
    working.wait();
    replica.barrier();
  };
  REQUIRE_OWN_ERROR("in the middle of it", strategy.run(throws));
}

void gradient_steps() {
  const dist::strategy strategy(2);
  strategy.run([](replica replica) {
    std::array<float, 2> gradient{3, 4}, parameter{1, 1}, momentum{};
    replica.reduce_apply(reduce_op::mean, gradient, parameter, dist::apply::sgd(0.5));
    REQUIRE(parameter == (std::array<float, 2>{-0.5F, -1}));

    gradient = {3, 4};
    const dist::tensor_list states{tensor(momentum)};
    const double norm =
        replica.reduce_apply(reduce_op::mean, gradient, parameter,
                             dist::apply::sgd(1, 0.5).states(states).clip_norm(2.5), {"step"});
    REQUIRE(norm == 5);
    REQUIRE(momentum == (std::array<float, 2>{-1.5F, -2}));
    REQUIRE(parameter == (std::array<float, 2>{-2, -3}));

    gradient = {1, 2};
    const auto add = [](const dist_block &block) noexcept {
      for (int64_t i = 0; i < block.count; ++i)
        static_cast<float *>(block.parameter)[i] += static_cast<const float *>(block.gradient)[i];
    };
    replica.reduce_apply(reduce_op::sum, gradient, parameter, dist::apply::with(add));
    REQUIRE(parameter == (std::array<float, 2>{0, 1}));
    const dist::tensor_list too_many{tensor(momentum), tensor(momentum), tensor(momentum)};
    const dist::tensor_list pair{tensor(gradient), tensor(parameter)};
    REQUIRE_ERROR(DIST_INVALID_ARGUMENT,
                  replica.reduce_apply(reduce_op::sum, pair, pair, dist::apply::sgd(1).states(too_many)));
  });
}

void merge_calls() {
  const dist::strategy strategy(R);
  std::atomic<int> calls{0};
  strategy.run([&](replica replica) {
    const dist::strategy_ref owner = replica.strategy();
    const dist::value mine = scalar(owner, static_cast<float>(replica.id()));
    const dist::value sum = replica.merge_call(
        [&](dist::strategy_ref outside, const dist::value &args) {
          ++calls;
          return outside.reduce_to(reduce_op::sum, args[0], dist::destination());
        },
        dist::value::list(owner, {mine}));
    REQUIRE(scalar_of<float>(sum) == 3);
    REQUIRE(!replica.merge_call([](dist::strategy_ref, const dist::value &) {}));
    const dist::value named = replica.merge_call(
        [](dist::strategy_ref outside, const dist::value &, const dist::value &kwargs) {
          return outside.reduce_to(reduce_op::sum, kwargs["x"], dist::destination());
        },
        {}, dist::value::dict(owner, {{"x", mine}}));
    REQUIRE(scalar_of<float>(named) == 3);
  });
  assert_int_equal(calls, 1);

  const auto throws = [](replica replica) {
    replica.merge_call([](dist::strategy_ref, const dist::value &) { throw own_error("not today"); });
  };
  REQUIRE_OWN_ERROR("not today", strategy.run(throws));
  // A replica can catch it. The other replicas get its text.
  std::array<std::string, R> seen;
  strategy.run([&](replica replica) {
    try {
      replica.merge_call([](dist::strategy_ref, const dist::value &) { throw own_error("tomorrow"); });
    } catch (const std::runtime_error &failure) {
      seen[static_cast<std::size_t>(replica.id())] = failure.what();
    }
  });
  for (const std::string &words : seen) assert_string_equal(words.c_str(), "tomorrow");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      HPP_TEST(work_is_begun_and_waited_for),
      HPP_TEST(one_of_several),
      HPP_TEST(a_plan_runs_in_rounds),
      HPP_TEST(cancelled_work_ends_everywhere),
      HPP_TEST(an_exception_past_work_under_way),
      HPP_TEST(gradient_steps),
      HPP_TEST(merge_calls),
  };
  return cmocka_run_group_tests_name("dist.hpp: work", tests, nullptr, nullptr);
}
