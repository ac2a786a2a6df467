// SPDX-License-Identifier: Apache-2.0
//
// dist.hpp: the same ten errors in every language, as exceptions. The first argument is bindings/errors.txt,
// whose lines "C, C++" have what dist::error says: C++ uses the C names of options and constants, and
// error::function() is the function of the C API that failed.
#include "hpp_support.hpp"

#include <fstream>
#include <optional>

namespace {

const char *file_name;

// Returns the line of C++ for an error: function | parameter | message.
std::string line_of(const std::string &name) {
  const std::string start = "  C, C++ | ";
  std::ifstream file(file_name);
  std::string line;
  for (bool here = false; std::getline(file, line);) {
    if (line[0] != ' ') here = line == name;
    if (here && line.rfind(start, 0) == 0) return line.substr(start.size());
  }
  throw std::logic_error("errors.txt has no " + name);
}

template <class Call>
void says(const char *name, dist_status code, Call &&call) {
  try {
    call();
  } catch (const dist::error &failed) {
    assert_int_equal(failed.code(), code);
    const std::string said = failed.function() + " | " + failed.parameter() + " | " + failed.what();
    assert_string_equal(said.c_str(), line_of(name).c_str());
    return;
  }
  fail_msg("%s: nothing was thrown", name);
}

void what_cpp_says() {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = -1;
  says("replicas", DIST_INVALID_ARGUMENT, [&] { const dist::strategy none(options); });
  const dist::strategy strategy(2);
  says("group", DIST_INVALID_ARGUMENT, [&] { const dist::group none(strategy, {0, 7}); });

  says("shapes", DIST_INVALID_ARGUMENT, [&] {
    strategy.run([](dist::replica replica) {
      std::vector<float> data(2 + static_cast<std::size_t>(replica.id()));
      dist::collective_options tagged;
      tagged.tag = "gradients";
      replica.all_reduce(dist::reduce_op::sum, data, tagged);
    });
  });
  says("left", DIST_ABORTED, [&] {
    strategy.run([](dist::replica replica) {
      if (replica.id() == 0) replica.barrier();
    });
  });
  says("root", DIST_INVALID_ARGUMENT, [&] {
    strategy.run([](dist::replica replica) {
      std::vector<float> data(1);
      replica.broadcast(7, data);
    });
  });
  std::optional<dist::replica> ended;
  strategy.run([&](dist::replica replica) {
    if (replica.id() == 0) ended = replica;
  });
  says("stale", DIST_FAILED_PRECONDITION, [&] { ended->barrier(); });

  const std::vector<float> two(2), three(3);
  const dist::variable w(strategy, two, "w");
  const dist::value longer(strategy, three);
  says("assign", DIST_INVALID_ARGUMENT, [&] { strategy.assign(w, longer, DIST_ASSIGN); });
  says("checkpoint", DIST_NOT_FOUND, [&] { const dist::checkpoint none(strategy, "/nothing/here"); });
  dist_cluster_resolver_options from = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  from.tf_config = "{";
  const auto resolver = dist::cluster_resolver::tf_config(&from);
  says("tf_config", DIST_INVALID_ARGUMENT, [&] { (void)resolver.spec(); });
  says("device", DIST_INVALID_ARGUMENT, [&] { (void)dist::canonical_device("GPU:x"); });
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  file_name = argv[1];
  const CMUnitTest tests[] = {HPP_TEST(what_cpp_says)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
