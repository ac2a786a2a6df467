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

// A callback of the program: the lines below a call.
struct Played {
  Player* player = nullptr;
  const Line* call = nullptr;
};

class Player {
 public:
  explicit Player(const Case& one) : case_(one) {}

  // Returns one text for each deviation from the transcript.
  std::vector<std::string> play();

  // Makes the call of a line on this thread.
  void perform(const Line& line);
  // Makes the calls below a callback's line. Returns false if not all could be made.
  bool perform_below(const Line& function);

  // ---- Objects. Returns the C handle for a name. Throws Malformed if there is none yet.
  void* object(const std::string& name);
  std::string name_of(const void* object);
  // Returns false if the name belongs to another object.
  bool bind(const std::string& name, void* object, bool anew);
  void forget(const std::string& name);
  // Destroys it with the case, unless the transcript destroys it.
  void own(const std::string& name);
  void release_later(dist_value* value);

  // ---- Callbacks
  Played* function(const Line& call);
  // Takes a line below the call that satisfies `fits` and has not been played.
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
  // Compares each field with the expected one, and records a fault if they differ.
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
