// SPDX-License-Identifier: Apache-2.0
// Plays a transcript (TRANSCRIPTS.md) through the C ABI: makes every call, provides every callback, and
// compares the answers with the recorded ones. The players of other languages follow its design.
#pragma once

#include <dist/dist.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "line.hpp"

namespace golden::transcript {

class Player;

// A function of the program's: the lines below a call.
struct Played {
  Player* player = nullptr;
  const Line* call = nullptr;
};

class Player {
 public:
  explicit Player(const Case& one) : case_(one) {}

  // What is not as it is written, a text each: none where all is.
  std::vector<std::string> play();

  // Does the call of a line, on this thread.
  void perform(const Line& line);
  // Does the calls of a function's line. False: they could not all be done.
  bool perform_below(const Line& function);

  // ---- Objects. The C handle of a name; throws Malformed where there is none (yet).
  void* object(const std::string& name);
  std::string name_of(const void* object);
  // False: the name is another object's.
  bool bind(const std::string& name, void* object, bool anew);
  void forget(const std::string& name);
  // To be ended with the case, unless the transcript ends it.
  void own(const std::string& name);
  void release_later(dist_value* value);

  // ---- Functions
  Played* function(const Line& call);
  // A line below the call for which `fits` is true, and which has not been played.
  template <class Fits>
  const Line* take(const Line& call, const Fits& fits) {
    for (const auto& line : call.below) {
      const std::lock_guard lock(mutex_);
      if (played_.contains(line.get()) || !fits(*line)) continue;
      played_.insert(line.get());
      return line.get();
    }
    return nullptr;
  }

  void fault(const Line& line, const std::string& what);
  // Each field is as expected, or a fault.
  void compare(const Line& line, const Fields& expected, const Fields& came);

 private:
  void check_all_played(const Line& line, bool call);
  void end();

  const Case& case_;
  std::recursive_mutex mutex_;
  std::vector<std::string> faults_;
  std::map<std::string, void*> objects_;
  std::map<const void*, std::string> names_;
  std::vector<std::string> owned_;
  std::vector<dist_value*> values_;
  std::vector<std::unique_ptr<Played>> functions_;
  std::set<const Line*> played_;
};

}  // namespace golden::transcript
