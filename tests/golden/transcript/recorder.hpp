// SPDX-License-Identifier: Apache-2.0
// Records a case. The wrappers (wraps.cpp) intercept the calls between the replays and libdist and add them
// to the Log, each below the callback that made it, whichever thread it ran on.
#pragma once

#include <dist/tf.h>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "literals.hpp"
#include "program.hpp"
#include "tests/golden/harness/handles.hpp"

namespace golden::transcript {

class Log;

// A callback of the program that is passed through libdist.
struct Function {
  Log* log = nullptr;
  Line* call = nullptr;
  void (*fn)() = nullptr;
  void* user_data = nullptr;
  dist_release_fn release = nullptr;
  // An element of a table, by file (or 0) and index.
  struct Element {
    dist_status status = DIST_OK;
    dist_value* value = nullptr;
  };
  std::map<std::pair<std::size_t, int64_t>, Element> table;
};

// The log of one case.
class Log final : public Names {
 public:
  // From here to end(), this log contains all calls of all threads.
  Log(std::string area, std::string id);
  ~Log() override;

  // Returns the log to which a call on this thread belongs, or nullptr.
  static Log* current() noexcept;

  std::string known(char kind, const void* object) override;
  std::string comes(char kind, const void* object, std::string_view key, bool fresh) override;

  // Adds a line below the callback that this thread is in.
  Line* call(std::string name);
  // Adds a line for a callback below the call to which it was passed.
  Line* invocation(Line* of, const char* kind);
  // While the Scope exists, this thread is in a callback.
  class Scope {
   public:
    explicit Scope(Line* function) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Line* before_;
  };

  Function* keep(Line* call, void (*fn)(), void* user_data);
  template <class S>
  S* keep(const S& options) {
    const std::lock_guard lock(mutex_);
    return &std::get<std::deque<S>>(options_).emplace_back(options);
  }
  // From now on, the object's address may belong to another object.
  void forget(const void* object);
  // Removes a line whose content is already known.
  void drop(Line* line);
  // Returns whether a tensor's elements have changed since they were last seen.
  bool is_news(const dist_value* value, const std::string& literal);
  // Reports something that cannot be recorded.
  void fault(const std::string& what);

  // Ends the case and returns the transcript with its final names. If the case could not be recorded, returns
  // an empty text and sets `out_fault`.
  std::string end(std::string* out_fault, std::size_t* out_lines);

 private:
  std::string add(char kind, const void* object);
  void see(const void* value);

  std::mutex mutex_;
  Case case_;
  std::vector<char> kinds_;  // of objects, by number
  std::map<const void*, std::size_t> numbers_;
  std::map<const void*, std::string> seen_;
  std::vector<dist_value*> retained_;
  std::deque<Function> functions_;
  std::tuple<std::deque<dist_cross_device_options>, std::deque<dist_variable_options>> options_;
  std::string fault_;
};

}  // namespace golden::transcript
