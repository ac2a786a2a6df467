// SPDX-License-Identifier: Apache-2.0
//
// Support for the tests of dist.hpp. cmocka's asserts work only on the test's own thread. Replica functions
// call require() instead, which throws an exception that ends the run and fails the test.
#ifndef TESTS_ABI_HPP_SUPPORT_HPP
#define TESTS_ABI_HPP_SUPPORT_HPP

#include <dist/dist.hpp>

#include <setjmp.h>
#include <cstdarg>
#include <cstddef>
#include <string>
#include <thread>

extern "C" {
#include <cmocka.h>
}

// An exception type that libdist does not know.
struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool so, const char *what) {
  if (!so) throw std::logic_error(std::string("not so: ") + what);
}
#define REQUIRE(condition) require((condition), #condition)

// A test that fails with a message if an exception is thrown.
template <void (*Body)()>
void guarded(void **) {
  std::string trouble;
  try {
    Body();
    return;
  } catch (const std::exception &failure) {
    trouble = failure.what();
  }
  fail_msg("%s", trouble.c_str());
}
#define HPP_TEST(body) \
  { #body, guarded < body>, nullptr, nullptr, nullptr }

// Requires that the call throws an error with this code, and returns its text.
template <class Call>
std::string require_error(dist_status code, const char *what, Call &&call) {
  try {
    call();
  } catch (const dist::error &failure) {
    if (failure.code() == code) return failure.what();
    throw std::logic_error(std::string(what) + ": " + dist::status_name(failure.code()) + ", " +
                           failure.what());
  }
  throw std::logic_error(std::string(what) + " threw nothing");
}
#define REQUIRE_ERROR(code, call) require_error((code), #call, [&] { (void)(call); })

// Requires that the call throws own_error with this text.
template <class Call>
void require_own_error(const std::string &words, const char *what, Call &&call) {
  try {
    call();
  } catch (const own_error &failure) {
    if (failure.what() == words) return;
    throw std::logic_error(std::string(what) + " threw in other words: " + failure.what());
  } catch (const std::exception &failure) {
    throw std::logic_error(std::string(what) + " threw something else: " + failure.what());
  }
  throw std::logic_error(std::string(what) + " threw nothing");
}
#define REQUIRE_OWN_ERROR(words, call) require_own_error((words), #call, [&] { (void)(call); })

// Repeats the call while members of a run past its deadline are still leaving.
template <class Call>
void until_they_are_out(Call &&call) {
  for (;;) {
    try {
      return call();
    } catch (const dist::error &failure) {
      if (failure.code() != DIST_FAILED_PRECONDITION) throw;
    }
    std::this_thread::yield();
  }
}

template <class T>
T scalar_of(const dist::value &value) {
  return *value.tensor().data<T>();
}
template <class T>
dist::value scalar(const dist::strategy_ref &owner, T number) {
  return dist::value(owner, dist::tensor(&number, {}));
}
template <class T>
dist::value row(const dist::strategy_ref &owner, const std::vector<T> &numbers) {
  return dist::value(owner, numbers);
}
template <class T>
std::vector<T> row_of(const dist::value &value) {
  const dist::const_tensor tensor = value.tensor();
  const T *data = tensor.data<T>();
  return std::vector<T>(data, data + tensor.elements());
}

#endif  // TESTS_ABI_HPP_SUPPORT_HPP
