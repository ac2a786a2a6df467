// SPDX-License-Identifier: Apache-2.0
// The state of a Replay. Only replay.cpp, values.cpp, encode.cpp and play.cpp access it.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "replay.hpp"

namespace golden {

struct Replay::State {
  rapidjson::Document document;  // owns the memory of all JSON of the case
  Json description;
  Json inputs;
  Json recorded{rapidjson::kObjectType};

  Strategy owned;
  dist_strategy* strategy = nullptr;
  Strategy for_values;  // if the case has no strategy

  std::recursive_mutex mutex;  // values are also created on the replicas' threads
  std::map<std::string, Value> interned;

  // Returns the strategy from which values take their memory.
  dist_strategy* memory_of(Replay& replay);
};

}  // namespace golden
