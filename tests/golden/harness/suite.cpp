// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <map>

extern "C" {
#include <cmocka.h>

#include "tests/skip.h"
}

namespace golden {
namespace {

constexpr std::size_t kShown = 5;  // maximum number of printed differences per topic

struct Topic {
  std::size_t cases = 0;
  std::size_t not_built = 0;
  std::size_t different = 0;
  std::string text;
};
struct Results {
  std::map<std::string, Topic> topics;
  std::string stale;
};

void nothing_differs(void** state) {
  const Topic& topic = *static_cast<const Topic*>(*state);
  if (topic.cases == topic.not_built) skip_because("libdist is built without gRPC");
  if (topic.different == 0) return;
  print_error("%zu of %zu cases differ\n%s", topic.different, topic.cases, topic.text.c_str());
  fail();
}

void the_list_is_right(void** state) {
  const std::string& stale = *static_cast<const std::string*>(*state);
  if (stale.empty()) return;
  print_error("%s", stale.c_str());
  fail();
}

// Returns the first part of an id after the strategy's: "float32" for "MirroredStrategy2/float32/SUM".
std::string topic_of(const std::string& id) {
  const std::size_t begin = id.find('/');
  if (begin == id.npos) return id;
  return id.substr(begin + 1, id.find_first_of("/#", begin + 1) - begin - 1);
}

Results play_all(const ReportOptions& options) {
  Session session(options.list, options.own, options.selection, options.longest, options.grpc);
  Results results;
  for (const std::string& directory : options.directories) {
    for (const Area& area : session.load(directory)) {
      session.play(area, [&](const Case& one, Verdict verdict, const Judgement& judgement) {
        Topic& topic = results.topics[topic_of(one.id)];
        ++topic.cases;
        if (verdict == Verdict::kNotBuilt) ++topic.not_built;
        if (verdict != Verdict::kDifferent || ++topic.different > kShown) return;
        for (const Difference& fault : judgement.faults) topic.text += describe(area, one, fault);
        for (const Difference& difference : judgement.differences) {
          topic.text += describe(area, one, difference);
        }
      });
    }
  }
  for (const std::string& fault : session.stale()) results.stale += fault + "\n";
  if (results.topics.empty()) throw Malformed{"there is no case of area " + options.selection.area};
  return results;
}

int run_group(const std::vector<CMUnitTest>& tests) {
  // cmocka's macro does this, but only for arrays whose size is known at compile time.
  return _cmocka_run_group_tests("golden", tests.data(), tests.size(), nullptr, nullptr);
}

}  // namespace

int run_suite(const ReportOptions& options) {
  try {
    Results results = play_all(options);
    std::vector<CMUnitTest> tests;
    for (auto& [name, topic] : results.topics) {
      tests.push_back({name.c_str(), nothing_differs, nullptr, nullptr, &topic});
    }
    tests.push_back({"differences.md", the_list_is_right, nullptr, nullptr, &results.stale});
    return run_group(tests);
  } catch (const Malformed& error) {
    std::fprintf(stderr, "golden: %s\n", error.what.c_str());
    return 1;
  }
}

}  // namespace golden
