// SPDX-License-Identifier: Apache-2.0
// core/base/intrusive_list.hpp: the order of objects, two lists at a time, removal during a visit, and random
// operations compared with std::list.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <vector>

#include "core/base/intrusive_list.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail

namespace dist {
namespace {

struct ByAge;
struct ByName;
struct Object : ListLink<ByAge>, ListLink<ByName> {
  explicit Object(int given) : number(given) {}
  bool aged() const noexcept { return ListLink<ByAge>::linked(); }
  bool named() const noexcept { return ListLink<ByName>::linked(); }
  int number;
};
using Ages = IntrusiveList<Object, ByAge>;
using Names = IntrusiveList<Object, ByName>;

template <class List>
std::vector<int> numbers(List& list) {
  std::vector<int> all;
  for (Object& each : list) all.push_back(each.number);
  return all;
}

void objects_keep_their_order(void**) {
  Object a(1);
  Object b(2);
  Object c(3);
  Ages list;
  assert_true(list.empty() && list.first() == nullptr && list.last() == nullptr);
  assert_null(list.pop_front());
  list.push_back(b);
  list.push_back(c);
  list.push_front(a);
  assert_true(numbers(list) == (std::vector{1, 2, 3}));
  assert_ptr_equal(list.first(), &a);
  assert_ptr_equal(list.last(), &c);
  assert_ptr_equal(&list.front(), &a);
  assert_ptr_equal(&list.back(), &c);
  assert_ptr_equal(list.after(a), &b);
  assert_null(list.after(c));
  assert_ptr_equal(list.pop_front(), &a);
  assert_true(!a.aged() && b.aged());
  assert_false(list.remove(c));
  assert_ptr_equal(list.last(), &b);
  assert_true(list.remove(b));
  assert_true(list.empty() && numbers(list).empty());
  list.push_back(c);  // again
  assert_true(numbers(list) == std::vector{3});
  list.remove(c);
}

void an_object_is_in_two_lists(void**) {
  Object a(1);
  Object b(2);
  Ages ages;
  Names names;
  ages.push_back(a);
  ages.push_back(b);
  names.push_back(b);
  names.push_back(a);
  ages.remove(a);
  assert_true(!a.aged() && a.named());
  assert_true(numbers(ages) == std::vector{2});
  assert_true(numbers(names) == (std::vector{2, 1}));
  ages.remove(b);
  names.remove(a);
  names.remove(b);
}

void the_current_object_may_leave(void**) {
  Object a(1);
  Object b(2);
  Object c(3);
  Ages from;
  Ages to;
  for (Object* each : {&a, &b, &c}) from.push_back(*each);
  for (Object& each : from) {
    from.remove(each);
    if (each.number != 2) to.push_back(each);
  }
  assert_true(from.empty());
  assert_true(numbers(to) == (std::vector{1, 3}));
  while (to.pop_front() != nullptr) {
  }
}

void random_operations(void**) {
  std::mt19937 random(7);
  constexpr std::size_t kObjects = 20;
  std::vector<std::unique_ptr<Object>> objects;
  for (std::size_t i = 0; i < kObjects; ++i) objects.push_back(std::make_unique<Object>(static_cast<int>(i)));
  Ages list;
  std::list<int> wanted;
  for (int step = 0; step < 20'000; ++step) {
    Object& one = *objects[random() % kObjects];
    const uint32_t how = random() % 3;
    if (one.aged()) {
      list.remove(one);
      wanted.remove(one.number);
    } else if (how == 0) {
      list.push_front(one);
      wanted.push_front(one.number);
    } else {
      list.push_back(one);
      wanted.push_back(one.number);
    }
    if (how == 2 && !wanted.empty()) {
      assert_int_equal(list.pop_front()->number, wanted.front());
      wanted.pop_front();
    }
    const std::vector<int> found = numbers(list);
    assert_true(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()));
    assert_true(list.empty() == wanted.empty());
    if (!wanted.empty()) assert_int_equal(list.last()->number, wanted.back());
  }
  while (list.pop_front() != nullptr) {
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(objects_keep_their_order), cmocka_unit_test(an_object_is_in_two_lists),
      cmocka_unit_test(the_current_object_may_leave), cmocka_unit_test(random_operations)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
