// SPDX-License-Identifier: Apache-2.0
// core/strategy/explain_summary: the first three lines of dist_strategy_explain().
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/strategy/explain_summary.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist {
namespace {

std::string lines_of(const ExplainSummary& summary) {
  std::string text;
  TextOut out([](const char* piece, std::size_t size,
                 void* to) { static_cast<std::string*>(to)->append(piece, size); },
              &text);
  write_summary(summary, out);
  out.flush();
  return text;
}

ExplainSummary four_on_four() {
  ExplainSummary s;
  s.kind = "mirrored";
  s.replicas = s.local_replicas = 4;
  s.allowed_cpus = s.usable_cpus = 4;
  s.simd = "AVX2";
  s.held_bytes = 1536;
  return s;
}

void assert_warns(const ExplainSummary& summary, const char* warnings) {
  const std::string text = lines_of(summary);
  assert_string_equal(text.substr(text.find("\nwarnings: ") + 1).c_str(),
                      (std::string("warnings: ") + warnings + "\n").c_str());
}

void a_plain_strategy_has_three_lines(void**) {
  assert_string_equal(lines_of(four_on_four()).c_str(),
                      "mirrored strategy with 4 replicas on 1 worker; threads: the thread that starts the run and "
                      "3 library threads\n"
                      "machine: 4 usable CPUs, 1 NUMA domain, SIMD target AVX2, 1.5 KiB of memory held\n"
                      "warnings: none\n");
}

void workers_and_devices_are_counted(void**) {
  ExplainSummary s = four_on_four();
  s.kind = "multi-worker mirrored";
  s.replicas = 8;
  s.first_replica = 4;
  s.workers = 2;
  s.worker = 1;
  s.threads = DIST_THREADS_HOST;
  assert_non_null(std::strstr(
      lines_of(s).c_str(),
      "with 8 replicas on 2 workers (this is worker 1, with replicas 4-7); threads: 4 host threads\n"));
  s = four_on_four();
  s.kind = "mesh";
  s.local_replicas = s.replicas = 2;
  s.logical_devices = 2;
  s.threads = DIST_THREADS_LIBRARY;
  assert_non_null(std::strstr(
      lines_of(s).c_str(),
      "mesh strategy with 2 replicas of 2 logical devices each on 1 worker; threads: 4 library threads\n"));
}

void too_few_cpus_are_a_warning(void**) {
  ExplainSummary s = four_on_four();
  s.usable_cpus = s.allowed_cpus = 2;
  assert_warns(s, "4 replicas share 2 usable CPUs");
  s = four_on_four();
  s.cpu_quota = 2.5;
  s.usable_cpus = 2;
  assert_warns(s, "4 replicas share a cgroup quota of 2.5 CPUs");
  assert_non_null(
      std::strstr(lines_of(s).c_str(), "machine: 2 usable CPUs (4 allowed, with a cgroup quota of 2.5), "));
  s.local_replicas = s.replicas = 1;
  s.cpu_quota = 0.5;
  s.usable_cpus = 1;
  assert_warns(s, "1 replica has a cgroup quota of 0.5 CPUs");
  s = four_on_four();
  s.logical_devices = 2;
  assert_warns(s, "8 logical devices share 4 usable CPUs");
  s = four_on_four();
  s.network_threads = true;
  assert_warns(s, "4 replicas and the network threads share 4 usable CPUs");
  s.usable_cpus = s.allowed_cpus = 5;
  assert_warns(s, "none");
}

void trouble_with_peers_comes_first(void**) {
  ExplainSummary s = four_on_four();
  s.usable_cpus = s.allowed_cpus = 2;
  s.no_connection = "libdist-grpc.so is not installed";
  assert_warns(s,
               "the other workers cannot be reached: libdist-grpc.so is not installed; 4 replicas share 2 "
               "usable CPUs");
  s = four_on_four();
  s.exposed = true;
  assert_warns(s, "data sent to other machines is not encrypted");
}

void the_rest_is_named_too(void**) {
  ExplainSummary s = four_on_four();
  s.budget_threads = 2;
  s.run_threads = 4;
  assert_warns(s, "a run keeps 4 CPUs busy, but the budget has 2");
  s.budget_threads = 4;
  assert_warns(s, "none");
  s.pinned_cpu = 3;
  s.colliding = 1;
  s.quota_changed = true;
  s.stuck = 1;
  assert_warns(s,
               "1 request function is stuck, and another thread has taken over; several library threads are "
               "pinned to CPU 3; "
               "1 replica kept sharing a CPU with another one while a CPU was free; "
               "the cgroup quota has changed since the strategy was created");
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_plain_strategy_has_three_lines),
      cmocka_unit_test(workers_and_devices_are_counted),
      cmocka_unit_test(too_few_cpus_are_a_warning),
      cmocka_unit_test(trouble_with_peers_comes_first),
      cmocka_unit_test(the_rest_is_named_too),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
