// SPDX-License-Identifier: Apache-2.0
// The parsers of core/cluster: Slurm lists, Python numbers, JSON.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "core/cluster/integers.hpp"
#include "core/cluster/json.hpp"
#include "core/cluster/slurm.hpp"

extern "C" {
#include <cmocka.h>
}

using namespace dist;

namespace {

// The hosts, separated by blanks, or "-" if the list is rejected. The order is that of `scontrol show
// hostnames`.
std::string hosts_of(const char* text) {
  std::pmr::vector<std::pmr::string> hosts;
  if (!expand_host_list(text, "the list", &hosts).ok()) return "-";
  std::string all;
  for (const auto& host : hosts) all.append(all.empty() ? "" : " ").append(host);
  return all;
}

std::string tasks_of(const char* text) {
  std::pmr::vector<int32_t> tasks;
  if (!expand_tasks_per_node(text, "the list", &tasks).ok()) return "-";
  std::string all;
  for (const int32_t number : tasks) all.append(all.empty() ? "" : " ").append(std::to_string(number));
  return all;
}

void host_lists(void**) {
  const struct {
    const char* text;
    const char* hosts;
  } rows[] = {{"n1", "n1"},
              {"n[1-2],m5,o[3-4,6,7-9]", "n1 n2 m5 o3 o4 o6 o7 o8 o9"},
              {"n[08-11]", "n08 n09 n10 n11"},
              {"n[001,1,01]", "n001 n1 n01"},
              {"n[ 1-2 ]", "n01 n02"},  // as TensorFlow: the blank counts as a digit
              {"[1-3]", "1 2 3"},
              {"n[9-10]", "n9 n10"},
              {"n[0098-100]", "n0098 n0099 n0100"},
              {"b7,a3", "b7 a3"},
              {"n[1-2]s[01-03]", "n1s01 n1s02 n1s03 n2s01 n2s02 n2s03"},
              {"n[1-2][3-4]", "n13 n14 n23 n24"},
              {"a[1-2]b[3-4]c[5-6]", "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6"},
              {"rack-1-node[01-02]-x,m", "rack-1-node01-x rack-1-node02-x m"},
              {"n[4294967296-4294967297]", "n4294967296 n4294967297"},
              {"", ""},
              {"n1,", "n1"},
              {",n1", "n1"},
              {"n1,,n2", "n1 n2"},
              {"n1 \tn[2-3] ,m", "n1 n2 n3 m"},
              {"n[3-1]", "-"},
              {"n[", "-"},
              {"n]", "-"},
              {"n[]", "-"},
              {"n[1[2]", "-"},
              {"n[1]]", "-"},
              {"n[1][2", "-"},
              {"n[1-2-3]", "-"},
              {"n[1-]", "-"},
              {"n[-1]", "-"},
              {"n[a-b]", "-"},
              {"n[+1]", "-"},
              {"n[1_0]", "-"},
              {"n[1-+2]", "-"},
              {"n[1,]", "-"},
              {"n[1-5/2]", "-"},
              {"n[1-5:2]", "-"},
              {"n[1 2]", "-"},
              {"n[9999999999999999999]", "-"},
              {"a\nb", "-"},
              {"\xff", "-"}};
  for (const auto& row : rows) assert_string_equal(hosts_of(row.text).c_str(), row.hosts);
}

void tasks_per_node(void**) {
  const struct {
    const char* text;
    const char* tasks;
  } rows[] = {{"2(x3),1", "2 2 2 1"},
              {"02(x2)", "2 2"},
              {"2(x0)", ""},
              {"0", "0"},
              {"", "-"},
              {"a", "-"},
              {"2(3)", "-"},
              {"2(x)", "-"},
              {"2x3", "-"},
              {"2(x3", "-"},
              {"2, 1", "-"},
              {"-1", "-"},
              {"1,", "-"},
              {"(x2)", "-"},
              {"2(x3)4", "-"}};
  for (const auto& row : rows) assert_string_equal(tasks_of(row.text).c_str(), row.tasks);
}

void integers(void**) {
  int32_t number = 0;
  assert_true(int_of("01000", "it", &number).ok());
  assert_int_equal(number, 1000);
  assert_true(int_of("-2147483648", "it", &number).ok());
  assert_int_equal(number, INT32_MIN);
  for (const char* bad : {"", " ", " 1", "1 ", "+", "+1", "-", "1_000", "--1", "1 2", "0x1", "1.0", "_1",
                          "1_", "1__2", "2147483648", "99999999999999999999999"}) {
    assert_false(int_of(bad, "it", &number).ok());
    assert_int_equal(number, INT32_MIN);
  }
}

void json_within_limits(void**) {
  std::pmr::monotonic_buffer_resource memory;
  JsonTree tree(&memory);
  assert_true(tree.parse(R"( {"a": [1, "x", null], "b": {"c": -1.5e3}, "a": true} )", "it").ok());
  assert_true(tree.root().kind == JsonKind::kObject);
  assert_true(tree.find(tree.root(), "a")->kind == JsonKind::kTrue);
  assert_null(tree.find(tree.root(), "c"));
  const JsonTree::Value* const list = tree.first_of(tree.root());
  assert_true(list->kind == JsonKind::kList && list->key == "a");
  const JsonTree::Value* const text = tree.next_of(*tree.first_of(*list));
  assert_true(text->kind == JsonKind::kText && text->text == "x");
  assert_true(tree.next_of(*text)->kind == JsonKind::kNull && tree.next_of(*tree.next_of(*text)) == nullptr);
  assert_true(tree.first_of(*tree.find(tree.root(), "b"))->text == "-1.5e3");
  for (const char* bad :
       {"", " ", "{", "[1,]", "01", "1.", "Inf", "-NaN", "'a'", "\"\x01\"", "{} x", "\"\\ud800\""}) {
    assert_false(tree.parse(bad, "it").ok());
  }
  for (const char* good : {"NaN", "Infinity", "-Infinity", "0", "-0", "\"\"", "[]"}) {
    assert_true(tree.parse(good, "it").ok());
  }
}

}  // namespace

int main() {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(host_lists),
      cmocka_unit_test(tasks_per_node),
      cmocka_unit_test(integers),
      cmocka_unit_test(json_within_limits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
