// SPDX-License-Identifier: Apache-2.0
// core/base below the C ABI: statuses and their messages, tensor checks, strided copies, and host allocators
// that reject requests.
#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/names.hpp"
#include "core/base/replicas.hpp"
#include "core/base/status.hpp"
#include "core/base/tensor.hpp"
#include "dist/error.h"
#include "tests/enums.h"
#include "tests/unit/counting_memory.hpp"
#include "tests/unit/each_value.hpp"
#include "tests/unit/plain_error.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail() is meant below

namespace dist {
namespace {

// ---- Replicas by number ----

static_assert(!std::is_convertible_v<LocalReplica, GlobalReplica> &&
              !std::is_convertible_v<GlobalReplica, LocalReplica>);
static_assert(!std::is_convertible_v<int32_t, LocalReplica> &&
              !std::is_convertible_v<int32_t, GlobalReplica>);

void members_are_called_by_their_global_number(void**) {
  // The second of two processes of four replicas.
  const Naming replicas{.first = GlobalReplica{4}};
  assert_string_equal(replicas.word(), "replica");
  assert_int_equal(replicas.name(0).number(), 4);
  assert_int_equal(replicas.name(3).number(), 7);
  assert_int_equal(replicas.name(3).logical_device, -1);
  const Naming devices{.first = GlobalReplica{4}, .whole = replicas.name(1).replica};
  assert_string_equal(devices.word(), "logical device");
  assert_int_equal(devices.name(2).number(), 2);
  assert_int_equal(number(devices.name(2).replica), 5);
  const ReplicaCount four(4);
  assert_int_equal(four.local(), 4);
  assert_int_equal(number(four.global_of(LocalReplica{3})), 3);
}

// ---- Status ----

void failures_are_recorded(void**) {
  assert_true(kOk.ok());
  const Status status = fail(DIST_OUT_OF_RANGE, "batch %d of %s", 7, "train");
  assert_false(status.ok());
  assert_int_equal(status.code(), DIST_OUT_OF_RANGE);
  assert_int_equal(last_error().code, DIST_OUT_OF_RANGE);
  assert_string_equal(last_message(), "batch 7 of train");
  const uint64_t failures = failures_on_this_thread();
  // A message may quote the message that it replaces. The rest of the earlier report is cleared.
  last_error().culprit = {GlobalReplica{3}};
  assert_int_equal(invalid_argument("in[1]: %s", last_message()).code(), DIST_INVALID_ARGUMENT);
  assert_string_equal(last_message(), "in[1]: batch 7 of train");
  assert_int_equal(number(last_error().culprit.replica), -1);
  assert_int_equal(failed_precondition("not now").code(), DIST_FAILED_PRECONDITION);
  assert_int_equal(out_of_memory().code(), DIST_RESOURCE_EXHAUSTED);
  assert_int_equal(failures_on_this_thread(), failures + 3);
}

void failures_are_copied_whole(void**) {
  ErrorRecord report;
  report.code = DIST_ABORTED;
  report.culprit = {GlobalReplica{5}};
  report.sequence = 12;
  copy_text(report.tag, "grads");
  assert_int_equal(fail(report).code(), DIST_ABORTED);
  assert_int_equal(number(last_error().culprit.replica), 5);
  assert_int_equal(last_error().sequence, 12);
  assert_string_equal(last_error().tag, "grads");
  assert_int_equal(fail(last_error()).code(), DIST_ABORTED);  // the record itself as the argument
  assert_string_equal(last_error().tag, "grads");
}

void failures_belong_to_a_thread(void**) {
  (void)fail(DIST_NOT_FOUND, "here");
  dist_status there = DIST_UNKNOWN;
  std::thread([&there] { there = last_error().code; }).join();
  assert_int_equal(there, DIST_OK);
  assert_int_equal(last_error().code, DIST_NOT_FOUND);
}

void long_messages_are_cut(void**) {
  const std::string words(5000, 'x');
  (void)fail(DIST_INTERNAL, "%s", words.c_str());
  assert_int_equal(std::strlen(last_message()), sizeof(ErrorRecord::message) - 1);
}

void text_is_cut_between_characters(void**) {
  char text[6];
  copy_text(text, "abcde");
  assert_string_equal(text, "abcde");
  copy_text(text, "abcdef");
  assert_string_equal(text, "abcde");
  copy_text(text, "abc\xE2\x82\xAC");  // the euro sign's three bytes do not fit
  assert_string_equal(text, "abc");
  copy_text(text, "ab\xE2\x82\xAC");
  assert_string_equal(text, "ab\xE2\x82\xAC");
  copy_text(text, "abcd\xC3\xA9");
  assert_string_equal(text, "abcd");
  copy_text(text, nullptr);
  assert_string_equal(text, "");
}

void outputs_have_an_address_each(void**) {
  float data[64] = {};
  const struct {
    int32_t ndim;
    int64_t shape[3];
    int64_t strides[3];
    bool good;
  } cases[] = {
      {1, {4}, {1}, true},
      {1, {4}, {0}, false},
      {1, {1}, {0}, true},
      {1, {4}, {-1}, true},
      {2, {4, 4}, {1, 4}, true},
      {2, {4, 4}, {4, 1}, true},
      {2, {4, 4}, {3, 1}, false},
      {2, {4, 4}, {1, 3}, false},
      {2, {4, 4}, {-4, 1}, true},
      {2, {4, 4}, {1, 1}, false},
      {2, {1, 4}, {0, 1}, true},
      {3, {2, 2, 2}, {4, 1, 2}, true},
      {3, {2, 2, 2}, {3, 1, 2}, false},
      {3, {2, 0, 2}, {0, 0, 0}, true},
  };
  for (const auto& each : cases) {
    const dist_tensor tensor{data + 32, DIST_F32, each.ndim, each.shape, each.strides};
    TensorSize size;
    assert_true(check_tensor(tensor, "in", &size).ok());
    assert_int_equal(check_output(tensor, "out", &size).ok(), each.good);
  }
}

void elements_lie_where_addresses_are(void**) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  float data[4] = {};
  TensorSize size;
  for (const int64_t stride : {kMax, kMin, kMax / 4, kMin / 4, kMax / 8 + 1}) {
    const int64_t shape = 3;
    assert_false(check_tensor({data, DIST_F32, 1, &shape, &stride}, "in", &size).ok());
  }
  const int64_t most = kMax;
  assert_false(
      check_tensor({reinterpret_cast<void*>(~uintptr_t{0} - 8), DIST_U8, 1, &most, nullptr}, "in", &size)
          .ok());
  const int64_t shape = 4;
  const int64_t back = -(int64_t{1} << 61);
  assert_false(check_tensor({data, DIST_U8, 1, &shape, &back}, "in", &size).ok());
  const int64_t one = 1;
  assert_true(check_tensor({data, DIST_F32, 1, &one, &kMax}, "in", &size).ok());
}

void statuses_have_names(void**) {
  for (dist_status code = DIST_OK; code <= LAST_STATUS; ++code) {
    assert_non_null(known_status_name(code));
    assert_string_equal(status_name(code), known_status_name(code));
    for (dist_status other = DIST_OK; other < code; ++other) {
      assert_string_not_equal(status_name(code), status_name(other));
    }
  }
  assert_string_equal(status_name(DIST_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  assert_null(known_status_name(-1));
  assert_string_equal(status_name(-1), "status -1");
  assert_string_equal(status_name(DIST_DATA_LOSS + 1), "status 16");
}

// ---- Elements and operators ----

void dtypes_and_operators(void**) {
  static constexpr std::size_t kSizes[] = {0, 2, 2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1, 0};
  static_assert(std::size(kSizes) == LAST_DTYPE + 2, "kSizes has the size of each dtype, by its number");
  for (dist_dtype dtype{}; dtype <= LAST_DTYPE + 1; ++dtype) {
    assert_int_equal(dtype_size(dtype), kSizes[dtype]);
    assert_false(dtype_is_floating(dtype) && dtype_is_integer(dtype));
  }
  assert_int_equal(dtype_size(dist_dtype{-1}), 0);
  assert_string_equal(dtype_name(DIST_BF16), "bf16");
  assert_string_equal(dtype_name(dist_dtype{99}), "no dtype");
  assert_int_equal(dtype_of_mean(DIST_I16), DIST_F32);
  assert_int_equal(dtype_of_mean(DIST_U32), DIST_F64);
  assert_int_equal(dtype_of_mean(DIST_I64), DIST_F64);
  assert_int_equal(dtype_of_mean(DIST_BF16), DIST_BF16);
  assert_int_equal(dtype_of_mean(DIST_COMPLEX64), DIST_COMPLEX64);
  assert_string_equal(op_name(DIST_REDUCE_PROD), "PROD");
  assert_string_equal(op_name(dist_reduce_op{}), "no op");
  assert_true(check_op(DIST_REDUCE_MAX, DIST_BOOL).ok());
  assert_true(check_op(DIST_REDUCE_MEAN, DIST_COMPLEX64).ok());
  assert_int_equal(check_op(DIST_REDUCE_SUM, DIST_BOOL).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(check_op(DIST_REDUCE_MIN, DIST_COMPLEX64).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(check_op(dist_reduce_op{}, DIST_F32).code(), DIST_INVALID_ARGUMENT);
  assert_int_equal(check_op(dist_reduce_op{DIST_REDUCE_PROD + 1}, DIST_F32).code(), DIST_INVALID_ARGUMENT);
}

void enums_have_names(void**) {
  for (int32_t domain = DIST_ENUM_STATUS; domain <= LAST_ENUM; ++domain) {
    assert_true(check_domain(domain, "f").ok());
    int names = 0;
    for (int32_t number = -1; number < 0x2000; ++number) {
      const char* const name = enum_name(domain, number);
      if (name == nullptr) continue;
      ++names;
      int32_t found = -100;
      assert_true(enum_from_name(domain, name, &found).ok());
      assert_int_equal(found, number);
    }
    assert_in_range(names, 2, 20);
  }
  assert_string_equal(enum_name(DIST_ENUM_DTYPE, LAST_DTYPE), dtype_name(LAST_DTYPE));
  assert_null(enum_name(DIST_ENUM_DTYPE, LAST_DTYPE + 1));
  assert_null(enum_name(DIST_ENUM_COLLECTIVE, DIST_COLLECTIVE_NONE));
  assert_string_equal(enum_name(DIST_ENUM_COLLECTIVE, LAST_COLLECTIVE), collective_name(LAST_COLLECTIVE));
  assert_null(enum_name(DIST_ENUM_VALUE_REDUCTION, DIST_REDUCE_MIN));
  assert_null(enum_name(0, 1));
  assert_null(enum_name(LAST_ENUM + 1, 1));
  int32_t found = -100;
  assert_int_equal(enum_from_name(DIST_ENUM_SHARD_POLICY, "nearby", &found).code(), DIST_INVALID_ARGUMENT);
  assert_non_null(std::strstr(last_message(), "shard policy: use \"AUTO\", "));
  assert_int_equal(found, -100);
  assert_int_equal(check_domain(LAST_ENUM + 1, "f").code(), DIST_INVALID_ARGUMENT);
  assert_non_null(std::strstr(last_message(), "must be one of DIST_ENUM_STATUS, DTYPE, "));
  assert_false(check_domain(0, "f").ok());
}

// ---- Tensors ----

float g_data[64];

dist_tensor tensor(const std::vector<int64_t>& shape, const int64_t* strides = nullptr,
                   dist_dtype dtype = DIST_F32) {
  return {g_data, dtype, static_cast<int32_t>(shape.size()), shape.data(), strides};
}

void good_tensors_are_measured(void**) {
  TensorSize size;
  const std::vector<int64_t> matrix = {3, 4};
  assert_true(check_tensor(tensor(matrix), "x", &size).ok());
  assert_int_equal(size.elements, 12);
  assert_int_equal(size.bytes, 48);
  assert_true(size.contiguous);

  const dist_tensor scalar = {g_data, DIST_F64, 0, nullptr, nullptr};
  assert_true(check_tensor(scalar, "x", &size).ok());
  assert_int_equal(size.elements, 1);
  assert_int_equal(size.bytes, 8);

  // A tensor without elements needs no memory, and its other sizes cannot overflow.
  const std::vector<int64_t> empty = {int64_t{1} << 62, 4, 0};
  dist_tensor nothing = tensor(empty);
  nothing.data = nullptr;
  assert_true(check_tensor(nothing, "x", &size).ok());
  assert_int_equal(size.elements, 0);
  assert_int_equal(size.bytes, 0);
  assert_true(size.contiguous);

  const std::vector<int64_t> most = {std::numeric_limits<int64_t>::max() / 4};
  assert_true(check_tensor(tensor(most), "x", &size).ok());
  assert_int_equal(size.elements, most[0]);
}

void strides_tell_gaps(void**) {
  TensorSize size;
  const std::vector<int64_t> shape = {3, 1, 4};
  const int64_t dense[] = {4, 99, 1};  // the stride of a dimension of size 1 is unused
  const int64_t padded[] = {5, 5, 1};
  const int64_t turned[] = {1, 1, 3};
  assert_true(check_tensor(tensor(shape, dense), "x", &size).ok() && size.contiguous);
  assert_true(check_tensor(tensor(shape, padded), "x", &size).ok() && !size.contiguous);
  assert_true(check_tensor(tensor(shape, turned), "x", &size).ok() && !size.contiguous);
  assert_int_equal(size.bytes, 48);
}

void assert_refused(const dist_tensor& bad, const char* words) {
  TensorSize size{-5, 7, false};
  assert_int_equal(check_tensor(bad, "in[2]", &size).code(), DIST_INVALID_ARGUMENT);
  assert_non_null(std::strstr(last_message(), "in[2]"));
  assert_non_null(std::strstr(last_message(), words));
  assert_true(size.elements == -5 && size.bytes == 7);  // written only on OK
}

void bad_tensors_are_refused(void**) {
  const std::vector<int64_t> shape = {2, 3};
  const std::vector<int64_t> negative = {2, -1};
  const std::vector<int64_t> too_many = {std::numeric_limits<int64_t>::max() / 4 + 1};
  const std::vector<int64_t> product = {int64_t{1} << 31, int64_t{1} << 31, 2};
  const std::vector<int64_t> dimensions(DIST_MAX_NDIM + 1, 1);
  assert_refused(tensor(shape, nullptr, dist_dtype{}), "0 is not a dtype");
  assert_refused(tensor(shape, nullptr, dist_dtype{99}), "99 is not a dtype");
  assert_refused(tensor(negative), "shape[1] is -1");
  assert_refused(tensor(too_many), "2^63");
  assert_refused(tensor(product), "2^63");
  assert_refused(tensor(dimensions), "ndim is 17");
  assert_refused({g_data, DIST_F32, -1, shape.data(), nullptr}, "ndim is -1");
  assert_refused({g_data, DIST_F32, 2, nullptr, nullptr}, "shape is NULL");
  assert_refused({nullptr, DIST_F32, 2, shape.data(), nullptr}, "data is NULL");
}

void shapes_are_compared_and_described(void**) {
  const std::vector<int64_t> a = {3, 4}, b = {4, 3}, c = {3, 4, 1};
  assert_true(same_shape(tensor(a), tensor(a)));
  assert_false(same_shape(tensor(a), tensor(b)));
  assert_false(same_shape(tensor(a), tensor(c)));
  char text[32];
  describe(tensor(c), text, sizeof text);
  assert_string_equal(text, "f32[3, 4, 1]");
  describe({g_data, DIST_BOOL, 0, nullptr, nullptr}, text, sizeof text);
  assert_string_equal(text, "bool[]");
  char small[8];
  describe(tensor(c), small, sizeof small);
  assert_string_equal(small, "f32[3, ");
}

void elements_are_copied_between_strides(void**) {
  const std::vector<int64_t> shape = {2, 3};
  int16_t from[] = {1, 2, 3, 4, 5, 6};
  int16_t to[16];
  const auto copy = [&](std::size_t from_at, const int64_t* from_strides, const int64_t* to_strides) {
    std::fill_n(to, std::size(to), int16_t{-1});
    copy_elements({from + from_at, DIST_I16, 2, shape.data(), from_strides},
                  {to, DIST_I16, 2, shape.data(), to_strides});
  };
  const auto assert_is = [&](std::vector<int16_t> expected) {
    expected.resize(std::size(to), -1);
    assert_memory_equal(to, expected.data(), sizeof to);
  };
  const int64_t turned[] = {1, 2}, padded[] = {4, 1}, repeated[] = {0, 1}, backwards[] = {-3, -1};
  copy(0, nullptr, nullptr);
  assert_is({1, 2, 3, 4, 5, 6});
  copy(0, turned, nullptr);
  assert_is({1, 3, 5, 2, 4, 6});
  copy(0, nullptr, turned);
  assert_is({1, 4, 2, 5, 3, 6});
  copy(0, nullptr, padded);
  assert_is({1, 2, 3, -1, 4, 5, 6});
  copy(0, repeated, nullptr);
  assert_is({1, 2, 3, 1, 2, 3});
  copy(5, backwards, nullptr);
  assert_is({6, 5, 4, 3, 2, 1});

  std::fill_n(to, std::size(to), int16_t{-1});
  copy_elements({from + 2, DIST_I16, 0, nullptr, nullptr}, {to, DIST_I16, 0, nullptr, nullptr});
  assert_is({3});
  const int64_t empty[] = {2, 0};
  copy_elements({nullptr, DIST_I16, 2, empty, nullptr}, {nullptr, DIST_I16, 2, empty, nullptr});
  assert_is({3});
}

// ---- Memory ----

struct Object final : Counted {
  Object(Memory& memory, int* ends, int value_) : Counted(memory), value(value_), ends_(ends) {
    if (value < 0) throw std::bad_alloc();
  }
  ~Object() override { ++*ends_; }
  alignas(64) int value;

 private:
  int* ends_;
};

void counted_objects_end_with_their_last_reference(void**) {
  CountingMemory memory;
  int ends = 0;
  Ref<Object> first = make_counted<Object>(*memory, &ends, 7);
  assert_int_equal(reinterpret_cast<std::uintptr_t>(first.get()) % 64, 0);
  Ref<Object> second = first;
  Ref<Object> third = std::move(first);
  assert_false(static_cast<bool>(first));  // NOLINT(bugprone-use-after-move): a moved reference is empty
  second = third;
  third = Ref<Object>();
  assert_int_equal(ends, 0);
  assert_int_equal(second->value, 7);
  Ref<Object> adopted = Ref<Object>::adopt(second.take());
  Ref<Object> shared = Ref<Object>::share(adopted.get());
  adopted = Ref<Object>();
  assert_int_equal(ends, 0);
  shared = Ref<Object>();
  assert_int_equal(ends, 1);
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

void memory_outlives_its_objects(void**) {
  static int out;
  out = 0;
  const auto take = [](std::size_t bytes, std::size_t align, void*) -> void* {
    ++out;
    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
  };
  const auto give = [](void* block, std::size_t, std::size_t, void*) {
    --out;
    std::free(block);
  };
  Memory* memory = Memory::create({take, give, nullptr});
  int ends = 0;
  Ref<Object> object = make_counted<Object>(*memory, &ends, 1);
  memory->release();
  assert_int_equal(out, 2);  // the object's reference keeps the Memory
  object = Ref<Object>();
  assert_int_equal(ends, 1);
  assert_int_equal(out, 0);
}

void refusals_leak_nothing(void**) {
  assert_null(Memory::create({[](std::size_t, std::size_t, void*) -> void* { return nullptr; },
                              [](void*, std::size_t, std::size_t, void*) {}, nullptr}));
  CountingMemory memory;
  int ends = 0;
  const auto throws = [&](int value) {
    try {
      (void)make_counted<Object>(*memory, &ends, value);
      return false;
    } catch (const std::bad_alloc&) {
      return true;
    }
  };
  memory.refuse(0);
  assert_true(throws(1));
  assert_true(memory.refused());
  assert_true(throws(-1));  // from the constructor itself
  assert_int_equal(ends, 0);
  memory.refuse(0);
  assert_null((*memory).try_allocate(8, 8));
  memory.refuse(3);
  bool refused = false;
  try {
    std::pmr::vector<int> growing(&*memory);
    for (int i = 0; i < 1000; ++i) growing.push_back(i);
  } catch (const std::bad_alloc&) {
    refused = true;
  }
  assert_true(refused);
  assert_int_equal(memory.live(), 0);
  assert_int_equal(memory.mistakes(), 0);
}

void default_memory_works(void**) {
  Memory* memory = Memory::create({});
  assert_non_null(memory);
  void* nothing = memory->try_allocate(0, 1);  // still a distinct address
  void* aligned = memory->try_allocate(100, 4096);
  assert_non_null(nothing);
  assert_int_equal(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0);
  memory->free(nothing, 0, 1);
  memory->free(aligned, 100, 4096);
  memory->free(nullptr, 100, 8);
  memory->release();
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(members_are_called_by_their_global_number),
      cmocka_unit_test(failures_are_recorded),
      cmocka_unit_test(failures_are_copied_whole),
      cmocka_unit_test(failures_belong_to_a_thread),
      cmocka_unit_test(long_messages_are_cut),
      cmocka_unit_test(text_is_cut_between_characters),
      cmocka_unit_test(outputs_have_an_address_each),
      cmocka_unit_test(elements_lie_where_addresses_are),
      cmocka_unit_test(statuses_have_names),
      cmocka_unit_test(dtypes_and_operators),
      cmocka_unit_test(enums_have_names),
      cmocka_unit_test(good_tensors_are_measured),
      cmocka_unit_test(strides_tell_gaps),
      cmocka_unit_test(bad_tensors_are_refused),
      cmocka_unit_test(shapes_are_compared_and_described),
      cmocka_unit_test(elements_are_copied_between_strides),
      cmocka_unit_test(counted_objects_end_with_their_last_reference),
      cmocka_unit_test(memory_outlives_its_objects),
      cmocka_unit_test(refusals_leak_nothing),
      cmocka_unit_test(default_memory_works),
  };
  return cmocka_run_group_tests_name("base", tests, nullptr, nullptr);
}
